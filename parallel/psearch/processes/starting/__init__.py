"""Starts processes, from any program: `launcher` starts the workers of an arena, `fork` forks one process, by the
`fork_server` (spoken to by `fork_client`) where the program has threads."""
