"""Compiles kernels, caches them and calls them; knows no chess.

Begin with `groups`: kernels that Python calls, as machine code that is loaded from the cache or compiled. `kernel_sets`
says which kernels a search runs: those of the package, some of them replaced by those of a user's file. `jit` has the
decorators and `intrinsics` the operations that numba lacks. `compiler` makes object files in a process that
`compiler_client` starts, `kernel_cache` keeps them, and `machine_code` loads them into memory.
"""
