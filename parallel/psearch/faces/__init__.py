"""User interfaces: command line (`cli`), UCI engine (`uci`) and web page (`web`). Programs use `psearch.api`."""
