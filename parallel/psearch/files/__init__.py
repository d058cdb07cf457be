"""Files that survive a kill: `safe_files` are journals, and files that are replaced whole; `raw_log` keeps the samples
of a study."""
