"""Files that survive a kill: `append_only` is a journal of JSON lines, `atomic_file` a file that is replaced whole;
`raw_log` keeps the samples of a study. `json_text` reads JSON that users may have written."""
