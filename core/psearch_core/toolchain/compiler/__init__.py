"""Compiles groups of kernels.

numba compiles a function together with everything that it calls, and each of these again with everything *it* calls, so
it optimises the same code many times. Here numba is only the front end. It compiles each kernel by itself to LLVM
bitcode (`front_end`); the kernels that it calls are external symbols. All signatures are known beforehand, so processes
can compile kernels in parallel and in any order, and a kernel that has not changed (`dependencies`) is not compiled
again. Then the kernels of a group are linked into one module, in which only the entries are visible from outside, and
LLVM optimises it once, across all calls (`back_end`). `build` runs the whole; `plug_ins` imports a user's file of
kernels and reports its mistakes.

Only tests and the process that `compiler_client.py` starts import this package.
"""
