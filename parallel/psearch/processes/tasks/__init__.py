"""Tasks for processes, of this machine or of a cluster: one way to start them, give them work and replace the lost.

`task_messages` is what a program and its processes tell each other, and `BackEnd`, what either kind of them can do;
`task_processes` has those of this machine, `task_main` is one of them from inside, `task_sharing` shares a list of
tasks out. Processes on a cluster are in `psearch.remote`.
"""
