"""The package's policies, a module each, with the kernels in which a policy differs from `garms`.

The policy serial opens nothing and needs none. `root` and `ybw` open after the first move; `knuth`, `garms`, `kannan`
and `felten` predict the types of nodes and go by them; `calibrated` goes by what it has counted. Lazy SMP and ABDADA
split nothing and need none; claims (claims.py) keep ABDADA's workers apart. policy.py calls all of them; a policy in a
user's own file has the same kernels.
"""
