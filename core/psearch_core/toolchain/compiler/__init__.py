"""Compiles groups of kernels.

numba compiles a function together with everything that it calls, and each of these again with what *it* calls: most of
the time goes into optimising the same code many times. Here numba is only the front end. Each kernel becomes LLVM's
bitcode by itself (`front_end`), in which the kernels that it calls are external symbols: their signatures are known
beforehand, so any number of processes can do this in any order, and a kernel that has not changed (`dependencies`) need
not be done again. Then all kernels of a group are linked into one module, of which only the entries are visible from
outside, and LLVM optimises that once, across all calls (`back_end`). `build` puts it together; `plug_ins` imports a
user's file of kernels and says what is wrong with it.

Above the ground of core only; nothing imports it but the process that `groups.py` starts, and tests.
"""
