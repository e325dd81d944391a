"""A gate for synchronous code, which runs in a blocking checker's event loop.

All decisions are made by the async gate; this module only calls it from other threads.
"""

from __future__ import annotations

import threading
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Self

import anyio

from robotsgate import PolitenessGate as _AsyncGate
from robotsgate import RobotsChecker as _AsyncChecker
from robotsgate import TurnEnd
from robotsgate.sync._checker import RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.from_thread import BlockingPortal

    from robotsgate import HostStatus, Ledger, URLLike
    from robotsgate import Turn as _AsyncTurn
    from robotsgate.events import GateEvent, GateStats


class PolitenessGate:
    """A blocking version of `robotsgate.PolitenessGate`.

    Any number of threads may share a gate. Use it as a context manager inside the
    checker's `with` block, or call `close`; closing the checker also closes the gate.
    It cannot be used in a forked child process.

    There is no `schedule`: each thread waits for a turn for its own URL.
    """

    def __init__(
        self,
        checker: RobotsChecker,
        agent: str | Sequence[str],
        *,
        default_delay: float = 1.0,
        max_delay: float = 3_600.0,
        delay_factor: float = 0.0,
        max_concurrent_per_host: int = 1,
        max_turn_seconds: float = 300.0,
        max_hosts: int = 100_000,
        host_of: Callable[[str], str] | None = None,
        ledger: Ledger | None = None,
        on_event: Callable[[GateEvent], object] | None = None,
    ) -> None:
        """Create a gate.

        The arguments are the same as for `robotsgate.PolitenessGate`, except that
        `checker` comes from `robotsgate.sync`. `host_of` and `on_event` are called in
        the event loop's thread, so they must not call the checker or the gate. If
        `ledger` is an async context manager, such as a `SharedLedger`, the gate opens
        and closes it, so give each gate its own ledger.
        """
        given: object = checker
        if not isinstance(given, RobotsChecker):
            raise TypeError(f"expected a checker from robotsgate.sync, got {given!r}")
        self._checker = checker
        make = partial(
            _AsyncGate,
            checker._checker,  # noqa: SLF001 (same package)
            agent,
            default_delay=default_delay,
            max_delay=max_delay,
            delay_factor=delay_factor,
            max_concurrent_per_host=max_concurrent_per_host,
            max_turn_seconds=max_turn_seconds,
            max_hosts=max_hosts,
            host_of=host_of,
            ledger=ledger,
            on_event=on_event,
        )
        gates = checker._gates  # noqa: SLF001 (same package)
        self._gate, self._contexts = _portal(checker).call(_opened, make, ledger, gates)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, like a checker."""
        _AsyncChecker.__reduce__(self)

    def __enter__(self) -> Self:
        """The gate itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Call `close`."""
        self.close()

    def close(self) -> None:
        """Grant no more turns. Can be called more than once.

        Threads that are waiting for a turn get a RuntimeError; open turns may finish.
        The checker stays open. Has no effect in a child process.
        """
        with suppress(RuntimeError):  # closed, or belongs to another process
            _portal(self._checker).call(self._contexts.aclose)

    def turn(self, url: str | URLLike, *, patience: float | None = None) -> Turn:
        """Return a turn for one request to `url`'s host, for use in a `with` statement.

        See `robotsgate.PolitenessGate.turn`.
        """
        return Turn(self._checker, self._gate.turn(url, patience=patience))

    def ready_at(self, url: str | URLLike) -> float:
        """See `robotsgate.PolitenessGate.ready_at`."""
        return _portal(self._checker).call(self._gate.ready_at, url)

    def status(self, url: str | URLLike) -> HostStatus:
        """See `robotsgate.PolitenessGate.status`."""
        return _portal(self._checker).call(self._gate.status, url)

    @property
    def stats(self) -> GateStats:
        """The current counters."""
        return _portal(self._checker).call(lambda: self._gate.stats)


class Turn:
    """Permission to make one request to a host, from `PolitenessGate.turn`.

    Use it as a context manager around the request, including reading the response. A
    turn belongs to the thread that enters it.

    Attributes:
        url: the URL to fetch, as passed by the caller.
    """

    def __init__(self, checker: RobotsChecker, turn: _AsyncTurn) -> None:
        self.url: str | URLLike = turn.url
        self._checker = checker
        self._turn = turn

    def __enter__(self) -> Self:
        """Wait until the host is ready for the request.

        If an exception such as a KeyboardInterrupt interrupts the wait, the thread
        leaves the queue.

        Raises:
            DisallowedError: robots.txt does not allow the agent to fetch the URL.
            TurnNotInTimeError: the next turn would not start within `patience`.
            InvalidURLError: the URL has no origin.
            UnsupportedError: the scheme is ftp, and the checker has a client.
            RuntimeError: the gate is closed, the turn was already used, or the thread
                itself holds the turn that this one would wait for.
        """
        portal = _portal(self._checker)
        entry = _Entry(self._turn)
        try:
            portal.call(entry.begin, threading.current_thread())
        except BaseException:
            with suppress(RuntimeError):  # the checker was closed in the meantime
                portal.start_task_soon(entry.give_up)
            raise
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """End the turn. Any thread may call this.

        If nothing was reported, an exception is treated as a failure of the host,
        unless it is a `DisallowedError` or a `TurnNotInTimeError`. Has no effect in a
        child process.
        """
        with suppress(RuntimeError):  # closed, or belongs to another process
            _portal(self._checker).call(self._turn.__aexit__, kind, error, traceback)

    def report(
        self,
        response: object = None,
        *,
        status: int | None = None,
        retry_after: str | None = None,
        failure: bool = False,
    ) -> None:
        """See `robotsgate.Turn.report`."""
        report = partial(
            self._turn.report,
            response,
            status=status,
            retry_after=retry_after,
            failure=failure,
        )
        _portal(self._checker).call(report)


class _Entry:
    """One thread's attempt to enter a turn; its methods run in the event loop."""

    def __init__(self, turn: _AsyncTurn) -> None:
        self._claim = turn._claim  # noqa: SLF001 (same package)
        self._turns = turn._turns  # noqa: SLF001 (same package)
        self._has_begun = False

    async def begin(self, thread: threading.Thread) -> None:
        self._scope, self._over_event = anyio.CancelScope(), anyio.Event()
        try:
            with self._scope:
                # Not the thread's id, which may be reused.
                await self._turns.enter(self._claim, thread)
                self._has_begun = True
        finally:
            self._over_event.set()

    async def give_up(self) -> None:
        """End the wait, or the turn if it has started in the meantime."""
        self._scope.cancel()
        await self._over_event.wait()
        if self._has_begun:
            await self._turns.end(self._claim, TurnEnd.UNUSED)


async def _opened(
    make: Callable[[], _AsyncGate], ledger: object, gates: set[AsyncExitStack]
) -> tuple[_AsyncGate, AsyncExitStack]:
    """A gate, and the exit stack in `gates` that closes the gate and its ledger."""
    async with AsyncExitStack() as contexts:
        gate = make()
        if isinstance(ledger, AbstractAsyncContextManager):
            await contexts.enter_async_context(ledger)
        await contexts.enter_async_context(gate)
        opened = contexts.pop_all()
        opened.callback(gates.discard, opened)
        gates.add(opened)
        return gate, opened


def _portal(checker: RobotsChecker) -> BlockingPortal:
    """The portal to `checker`'s event loop.

    Raises:
        RuntimeError: the checker is closed, or belongs to another process.
    """
    return checker._portal  # noqa: SLF001 (same package)
