"""Parts of bench/tuning/tune.py: positions and their features, the model, the fit, the generated file.

The numba functions here are no kernels of the engine: they do not go through `psearch_core.toolchain.jit`
and leave no cache.
"""
