"""A small net and its training, on the processor: forward and backward by hand in numba, Adam in numpy.

- `network`: the net's weights, its value in numpy, its file.
- `gradients`: its error and the gradient of that, over a batch of positions.
- `fit`: epochs, learning rates, targets.
- `lessons`: what is learnt in which order, and what it is measured against.
- `inference`: the file by which the search evaluates.
"""
