"""Files that survive a kill: `safe_files` has journals and files that are replaced as a whole, `raw_log` the logs of
studies."""
