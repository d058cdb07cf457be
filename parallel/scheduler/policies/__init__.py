"""The package's policies, a module each, with the kernels in which a policy differs from `garms`.

`serial` opens nothing and needs no module. `root` and `ybw` open after the first move; `knuth`, `garms`, `kannan` and
`felten` predict the types of nodes and go by them; `calibrated` goes by what it has counted. `lazy` splits
nothing, and nor does `abdada`, whose workers are kept apart by `psearch.scheduler.claims`. `psearch.scheduler.policy` calls them; a policy of a user's own file has the same kernels.
"""
