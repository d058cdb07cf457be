"""One position on several machines (docs/design/machines.md): this one, and others that a Ray cluster has.

Begin with `joint_search`, one search from its begin to the answer: this machine's workers search as they would alone,
and whenever their supervisor looks after them, what the others have said is taken in, and what they are to know goes
out. `team` is the others as seen from here, from one search to the next; `machine` is one of them, in its own process;
`joint_messages` is what they tell each other, `machine_reports` translates.

The rest is logic without a clock and without a network, which virtual time drives as well (`virtual_machines`): what
each machine is told and whose answer is taken (`conductor`, `machine_vote`), a machine's side of the exchange of table
entries (`entry_sharing`), and what travels (`machine_messages`).
"""
