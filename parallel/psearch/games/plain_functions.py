"""Plain functions as kernels, whose types numba finds from the calls; in the compiler's process alone."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any, cast

import numba
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher

from psearch.games import rules
from psearch.games.user_game import RULES, check_game, place_of
from psearch_core.toolchain import jit
from psearch_core.toolchain.compiler.front_end import prepare, typed
from psearch_core.toolchain.compiler.plug_ins import mistake_in
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import Kernel
from psearch_core.toolchain.kernel_cache import PlugInError
from psearch_core.views import i64

_RETURNS_NOTHING = ("start", "make")


class PlainFunction(Kernel):
    """A function whose signature is that of its first call."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function, types.void())
        self.is_typed = False
        self._is_being_typed = False
        jit.registry[self.symbol] = self

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if not self.is_typed:
            self.infer(args)
        return super().get_call_template(args, kws)

    def infer(self, arguments: Sequence[Any]) -> None:
        """Find the type of the result for arguments of these types. Raises PlugInError."""
        if self._is_being_typed:
            raise PlugInError(f"{place_of(self.py_func)}: it calls itself: no kernel is recursive")
        self._is_being_typed = True
        self.arguments = tuple(types.unliteral(argument) for argument in arguments)
        self.result = None
        try:
            self.result = types.unliteral(typed(self).signature.return_type)
        except PlugInError:
            raise
        except Exception as error:  # whatever numba says of it
            if isinstance(error.__cause__, PlugInError):
                raise error.__cause__ from None
            raise mistake_in(self, error) from error
        self.is_typed = True
        prepare([self])


def kernels_of(module: ModuleType, file: str) -> list[Kernel]:
    """Return the kernels of a game. Raises PlugInError for what is no game, and for what cannot be compiled."""
    check_game(vars(module), file)
    made: dict[FunctionType, PlainFunction] = {}
    for name in RULES:
        vars(module)[name] = _compiled(vars(module)[name], made)
    prepare(jit.registry.values())
    record = cast(types.Record, numba.from_dtype(module.POSITION))
    moves_type = rules.Found.typeof("moves")
    given = {"pos": record, "found": moves_type, "move": i64}
    for name, arguments in RULES.items():
        function = vars(module)[name]
        if not function.is_typed:
            function.infer([given[argument] for argument in arguments])
        result = function.result
        if name not in _RETURNS_NOTHING and not isinstance(result, types.Integer | types.Boolean):
            wanted = "True or False" if name == "ended" else "a whole number"
            what = "nothing" if result == types.none else f"{result}, where it must be {wanted}"
            raise PlugInError(f"{place_of(function.py_func)}: it returns {what}")
    names = {f"user_{name}": vars(module)[name] for name in RULES}
    names |= {"position_at": view(record), "found_at": rules.found_at, "count": int(module.MOST_MOVES), "np": np}
    names["__name__"] = f"{module.__name__}.rules"
    stand_ins = []
    for name in (*RULES, "most_moves"):
        copy = FunctionType(vars(rules.Patterns)[name].__code__, dict(names), name)
        copy.__module__ = names["__name__"]
        stand_ins.append(cast(Kernel, jit.replaces(vars(rules)[name])(copy)))
    return [*made.values(), *stand_ins]


def _compiled(value: Any, made: dict[FunctionType, PlainFunction]) -> PlainFunction:
    """A function as a kernel, and all that it calls; numba's own decorators make no difference."""
    function = value.py_func if isinstance(value, Dispatcher) else value
    if function not in made:
        made[function] = PlainFunction(function)
        names = function.__globals__
        for name in function.__code__.co_names:
            called = names.get(name)
            if isinstance(called, FunctionType) or (isinstance(called, Dispatcher) and not isinstance(called, Kernel)):
                names[name] = _compiled(called, made)
    return made[function]
