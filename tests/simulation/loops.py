"""Runs a simulation on either event loop, in the same order each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio
from trio._core import _run as trio_run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


def run_on(
    backend: str,
    function: Callable[[_Argument], Awaitable[_Result]],
    argument: _Argument,
) -> _Result:
    """What `function` returns on `backend`, "asyncio" or "trio".

    Trio runs the tasks of each round in a random order. Here it is an order that
    depends on nothing else, by the two names that pytest-trio and Hypothesis use.
    """
    if backend != "trio":
        return anyio.run(function, argument, backend=backend)
    was_allowed = trio_run._ALLOW_DETERMINISTIC_SCHEDULING
    state = trio_run._r.getstate()
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True
    trio_run._r.seed(0)
    try:
        return anyio.run(function, argument, backend=backend)
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = was_allowed
        trio_run._r.setstate(state)
