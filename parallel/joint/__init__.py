"""One search by several machines (docs/design/machines.md): this one, and others that a Ray cluster has.

Begin with `search`, one search from its begin to the answer: this machine's workers search as they would alone, and
whenever their supervisor looks after them, what the others have said is taken in, and what they are to know goes out.
`team` is the others as seen from here, from one search to the next; `machine` is one of them, in its own process.
`messages` is what they tell each other, with the reports of `psearch.machines`, which has the logic and knows of no
network; `reports` translates them.
"""
