"""Kernels compiled, kept and called; no chess.

Begin with `groups`: kernels that Python calls, in machine code that is loaded or else compiled. `kernel_sets` says
which kernels a search runs: the package's, or some of a user's file in their place. `jit` has the decorators,
`intrinsics` what numba lacks, `compiler` makes object files from recipes, in a process that `compiler_client` starts,
one program at a time; `kernel_cache` keeps object files, and `machine_code` places them into memory.
"""
