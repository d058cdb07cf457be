"""Several machines search one position: what they tell each other, whose answer is taken.

Pure logic, without a clock and without input or output: virtual time drives it (`psearch.simulation`), a network can.
Imports core's constants and nothing else of the program.

Begin with `messages`, which is all that travels; then `conductor`, which makes one answer of many reports; `vote`
elects one of several answers. `sharing` is a machine's side of the exchange of table entries.
"""
