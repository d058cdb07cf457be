"""Addresses of the words that workers share without a lock, for the atomic operations.

Only atomic operations may access these words. `splitting.py` says which of them change only under a node's lock.
"""

from psearch_core.toolchain.intrinsics import atomic_load, check, field_address
from psearch_core.toolchain.jit import kernel, memory
from psearch_core.views import Context, Header, Node, Stack, header_of, i64

lock_of = field_address(Node, "lock")
open_of = field_address(Node, "open")
closed_of = field_address(Node, "closed")

state_of = field_address(Stack, "state")
mask_of = field_address(Stack, "open_mask")

stop_of = field_address(Header, "stop")
deadline_of = field_address(Header, "deadline")
abort_epoch_of = field_address(Header, "abort_epoch")
done_of = field_address(Header, "done")
info_count_of = field_address(Header, "info_count")
idle_workers_of = field_address(Header, "idle_workers")
roots_of = field_address(Header, "roots")
first_roots_of = field_address(Header, "first_roots")
claims_of = field_address(Header, "claims")


@kernel(i64(Context))
def idle_workers(ctx):
    """Return the number of workers without a stack. Records that this worker has asked, which costs virtual time."""
    ctx.has_read_idle = 1
    return atomic_load(idle_workers_of(header_of(ctx)))


@memory(i64(Context, i64))
def word(ctx, number):
    """Return the address of a word of the policy's memory, for `atomic_load`, `atomic_add` and `atomic_store`.

    All workers share these words, which are 0 when a search begins. number: from 0; the file's `WORDS` sets how many.
    """
    check(0 <= number < ctx.plug_in_words, "a word's number is from 0 to WORDS - 1")
    return ctx.plug_in + 8 * (number % ctx.plug_in_words)
