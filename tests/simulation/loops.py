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
    """Run `function` on `backend`, "asyncio" or "trio", and return its result.

    Trio runs the tasks of each batch in random order. Setting the same two internals
    as pytest-trio and Hypothesis makes the order reproducible.
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
