"""A small net and its training on the processor.

- `network`: the net's weights, its value in numpy, its files.
- `gradients`: its error and the gradient of that over a batch of positions, in numba; AdamW.
- `lessons`: targets, the passes over the positions, what survives a kill.
"""
