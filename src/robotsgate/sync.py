"""Blocking versions of the checker and the gate, usable from any thread.

All decisions are made by the async checker and gate. An event loop in a daemon thread
creates, runs and closes them; this module only calls them from other threads. Cached
lookups are done in the calling thread, because switching to the loop takes a hundred
times as long.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import threading
import warnings
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, Final, NoReturn, ParamSpec, Self, TypeVar
from weakref import WeakSet

import anyio
from anyio.from_thread import BlockingPortal

from robotsgate import Dialect, Policy, SystemClock
from robotsgate import PolitenessGate as _AsyncGate
from robotsgate import RobotsChecker as _AsyncChecker

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from datetime import timedelta
    from os import PathLike

    from robotsgate import (
        AsyncClientLike,
        AsyncTransportLike,
        CheckResult,
        Clock,
        Fetcher,
        RobotsTxt,
        Store,
        URLLike,
        Verdict,
    )
    from robotsgate import Turn as _AsyncTurn
    from robotsgate.events import CheckerEvent, CheckerStats, GateEvent, GateStats
    from robotsgate.politeness import HostStatus, Ledger

__all__ = ["PolitenessGate", "RobotsChecker", "Turn"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _in_loop(
    method: Callable[Concatenate[_AsyncChecker, _Arguments], Awaitable[_Result]],
) -> Callable[Concatenate[RobotsChecker, _Arguments], _Result]:
    """A blocking version of `method`, with its signature and docstring."""

    @wraps(method)
    def call(
        self: RobotsChecker,
        /,
        *arguments: _Arguments.args,
        **options: _Arguments.kwargs,
    ) -> _Result:
        called = partial(method, self._checker, *arguments, **options)
        return self._loop.wait_for(called)

    return call


class RobotsChecker:
    """A blocking version of `robotsgate.RobotsChecker`.

    Any number of threads may share a checker. Use it as a context manager, or call
    `close`. A checker that is still open is closed when the interpreter exits. If it is
    garbage collected while open, it emits a ResourceWarning, and its thread ends. It
    cannot be used in a forked child process.

    The first call that waits in a thread whose event loop has other tasks emits a
    RuntimeWarning, because these tasks have to wait, too.
    """

    def __init__(
        self,
        *,
        user_agent: str | None = None,
        client: Fetcher | AsyncClientLike | AsyncTransportLike | None = None,
        sign: Callable[[str, str, Mapping[str, str]], Mapping[str, str]] | None = None,
        store: Store | str | PathLike[str] | None = None,
        policy: Policy = Policy(),
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
        max_concurrent_fetches: int = 100,
        clock: Clock = SystemClock(),
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> None:
        """Start a thread that runs the event loop.

        The arguments are the same as for `robotsgate.RobotsChecker`, but the checker
        closes `client`, which can only be used in this event loop, and `sign` and
        `on_event` are called in the event loop's thread.
        """
        make = partial(
            _AsyncChecker,
            user_agent=user_agent,
            client=client,
            sign=sign,
            store=store,
            policy=policy,
            dialect=dialect,
            max_origins=max_origins,
            max_concurrent_fetches=max_concurrent_fetches,
            clock=clock,
            overrides=overrides,
            on_event=on_event,
        )
        self._loop = _Loop(make, client)
        self._checker = self._loop.checker
        # Safe in any thread, because it only does lookups and counts them.
        self._lookups = self._checker._lookups  # noqa: SLF001 (same package)
        _OPEN.add(self)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, like a checker."""
        _AsyncChecker.__reduce__(self)

    def __repr__(self) -> str:
        """As for the async checker."""
        return _in_sync(self._checker)

    def __del__(self) -> None:
        """Warn if the checker was not closed, and end its thread."""
        if hasattr(self, "_checker") and self._loop.is_alive():
            message = f"unclosed {self!r}"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)
            self._loop.use.cancel()  # without waiting, because this may be its thread

    def __enter__(self) -> Self:
        """The checker itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Call `close`."""
        self.close()

    def close(self) -> None:
        """Cancel all running fetches, and end the event loop's thread.

        Threads that are waiting for a fetch or a turn, or that need one later, get a
        RuntimeError. Your store stays open. Can be called more than once, and has no
        effect in a child process.
        """
        if self._loop.is_alive():
            self._loop.use.cancel()
            self._loop.join()
            self._loop.closed.result()

    def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """See `robotsgate.RobotsChecker.can_fetch`."""
        answer = self._lookups.at_once(agent, url)
        if answer is None:
            ask = partial(self._checker.can_fetch, agent, url)
            answer = self._loop.wait_for(ask)
        return answer

    check: Final = _in_loop(_AsyncChecker.check)

    def refusal(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict | None:
        """See `robotsgate.RobotsChecker.refusal`."""
        answer = self._lookups.at_once(agent, url)
        if answer:
            return None
        # Continue after that lookup, which has already been counted.
        refusal = partial(self._lookups.refusal, agent, url, answer=answer)
        return self._loop.wait_for(refusal)

    can_fetch_many: Final = _in_loop(_AsyncChecker.can_fetch_many)

    def check_many(
        self,
        agent: str | Sequence[str],
        urls: Iterable[str | URLLike],
        *,
        window: int = 1_000,
    ) -> Iterator[CheckResult]:
        """See `robotsgate.RobotsChecker.check_many`.

        `urls` is read in the event loop's thread, so it must not block or call this
        checker.
        """
        check = partial(self._checker.check_many, agent, urls, window=window)
        return self._each(self._loop.portal.call(check))

    def peek(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """See `robotsgate.RobotsChecker.peek`."""
        answer = self._lookups.at_once(agent, url)
        if answer is None:
            answer = self._loop.portal.call(self._checker.peek, agent, url)
        return answer

    robots_txt: Final = _in_loop(_AsyncChecker.robots_txt)
    crawl_delay: Final = _in_loop(_AsyncChecker.crawl_delay)
    request_rate: Final = _in_loop(_AsyncChecker.request_rate)
    usage_preferences: Final = _in_loop(_AsyncChecker.usage_preferences)
    sitemaps: Final = _in_loop(_AsyncChecker.sitemaps)
    prefetch: Final = _in_loop(_AsyncChecker.prefetch)
    refresh: Final = _in_loop(_AsyncChecker.refresh)
    forget: Final = _in_loop(_AsyncChecker.forget)
    purge: Final = _in_loop(_AsyncChecker.purge)

    @property
    def stats(self) -> CheckerStats:
        """The current counters."""
        return self._loop.portal.call(lambda: self._checker.stats)

    def _each(self, results: AsyncIterator[CheckResult]) -> Iterator[CheckResult]:
        with suppress(StopAsyncIteration):
            while True:
                yield self._loop.wait_for(results.__anext__)


_OPEN: WeakSet[RobotsChecker] = WeakSet()


@atexit.register
def _close_all() -> None:
    for checker in list(_OPEN):
        checker.close()


_BLOCKS_LOOP = (
    "a checker or gate of robotsgate.sync blocks this thread's event loop, so its other"
    " tasks have to wait; use robotsgate.RobotsChecker and"
    " robotsgate.PolitenessGate with await"
)


def _blocks_other_tasks() -> bool:
    """Whether a call that blocks this thread holds up tasks of an event loop.

    A loop with a single task, as for each request to an async view of Flask, has none.
    """
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return True
    try:
        return len(asyncio.all_tasks()) > 1
    except RuntimeError:  # no loop is running here
        return False


class _Loop(threading.Thread):
    """A daemon thread whose event loop creates, runs and closes a checker.

    Not `anyio.from_thread.start_blocking_portal`, whose thread is not a daemon: at
    exit, the interpreter would wait for it before calling `_close_all`.

    Attributes:
        gates: closes each open gate.
        use: cancel it to end the thread.
        closed: the outcome of closing everything.
    """

    def __init__(self, make: Callable[[], _AsyncChecker], client: object) -> None:
        super().__init__(name="robotsgate", daemon=True)
        self._make, self._client = make, client
        self._has_warned = False
        self.gates: set[AsyncExitStack] = set()
        self.use: Future[None] = Future()
        self.closed: Future[None] = Future()
        self._opened: Future[tuple[_AsyncChecker, BlockingPortal]] = Future()
        self.start()
        checker, self._way_in = self._opened.result()
        self.checker: _AsyncChecker = checker

    @property
    def portal(self) -> BlockingPortal:
        """The way into the event loop."""
        if not self.is_alive():  # a child process does not have the thread
            raise RuntimeError("the checker is closed, or belongs to another process")
        return self._way_in

    def wait_for(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run `work` in the event loop; warn once if other tasks here have to wait."""
        if not self._has_warned and _blocks_other_tasks():
            self._has_warned = True
            warnings.warn(_BLOCKS_LOOP, RuntimeWarning, stacklevel=3)
        return self.portal.call(work)

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with BlockingPortal() as portal:
            try:
                await self._serve(portal)
                self.closed.set_result(None)
            except BaseException as error:  # noqa: BLE001 (raised to the caller)
                outcome = self.closed if self._opened.done() else self._opened
                outcome.set_exception(error)

    async def _serve(self, portal: BlockingPortal) -> None:
        async with AsyncExitStack() as contexts:
            checker = self._make()
            close_client = getattr(self._client, "aclose", None)
            if close_client is not None:
                contexts.push_async_callback(close_client)
            await contexts.enter_async_context(checker)
            self._opened.set_result((checker, portal))
            with suppress(asyncio.CancelledError):
                await asyncio.wrap_future(self.use)
            for gate in self.gates:
                contexts.push_async_exit(gate)  # so gates are closed first


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
        default_delay: float | timedelta | Callable[[str], float | timedelta] = 1.0,
        max_delay: float | timedelta = 3_600.0,
        delay_factor: float = 0.0,
        max_concurrent_per_host: int = 1,
        max_turn_seconds: float | timedelta = 300.0,
        max_hosts: int = 100_000,
        host_of: Callable[[str], str] | None = None,
        ledger: Ledger | None = None,
        on_event: Callable[[GateEvent], object] | None = None,
    ) -> None:
        """Create a gate.

        The arguments are the same as for `robotsgate.PolitenessGate`, except that
        `checker` comes from `robotsgate.sync`. Functions that you pass are called in
        the event loop's thread, so they must not call the checker or the gate. If
        `ledger` is an async context manager, such as a `SharedLedger`, the gate opens
        and closes it, so give each gate its own ledger.
        """
        given: object = checker
        if not isinstance(given, RobotsChecker):
            raise TypeError(f"expected a checker from robotsgate.sync, got {given!r}")
        make = partial(
            _AsyncGate,
            checker._checker,  # noqa: SLF001 (same module)
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
        self._checker = checker  # which closes the gate when nobody refers to it
        self._loop = checker._loop  # noqa: SLF001 (same module)
        opened = self._loop.portal.call(_opened, make, ledger, self._loop.gates)
        self._gate, self._contexts = opened

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, like a checker."""
        _AsyncChecker.__reduce__(self)

    def __repr__(self) -> str:
        """As for the async gate."""
        return _in_sync(self._gate)

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
            self._loop.portal.call(self._contexts.aclose)

    def turn(
        self, url: str | URLLike, *, patience: float | timedelta | None = None
    ) -> Turn:
        """Return a turn for one request to `url`'s host, for use in a `with` statement.

        See `robotsgate.PolitenessGate.turn`.
        """
        return Turn(self._checker, self._gate.turn(url, patience=patience))

    def ready_at(self, url: str | URLLike) -> float:
        """See `robotsgate.PolitenessGate.ready_at`."""
        return self._loop.portal.call(self._gate.ready_at, url)

    def status(self, url: str | URLLike) -> HostStatus:
        """See `robotsgate.PolitenessGate.status`."""
        return self._loop.portal.call(self._gate.status, url)

    def forget(self, url: str | URLLike) -> None:
        """See `robotsgate.PolitenessGate.forget`."""
        self._loop.portal.call(self._gate.forget, url)

    @property
    def stats(self) -> GateStats:
        """The current counters."""
        return self._loop.portal.call(lambda: self._gate.stats)


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
        self._loop = checker._loop  # noqa: SLF001 (same module)
        self._turn = turn

    def __repr__(self) -> str:
        """As for the async turn."""
        return _in_sync(self._turn)

    def __enter__(self) -> Self:
        """Wait until the host is ready for the request.

        If an exception such as a KeyboardInterrupt interrupts the wait, the thread
        leaves the queue.

        Raises:
            DisallowedError: robots.txt does not allow the agent to fetch the URL.
            TurnNotInTimeError: the next turn would not start within `patience`.
            InvalidURLError: the URL has no origin.
            UnsupportedError: the scheme is ftp, and the checker has a client.
            TurnDeadlockError: the thread itself holds the turn that this one would wait
                for.
            RuntimeError: the gate is closed, or the turn was already used.
        """
        portal = self._loop.portal
        entry = _Entry(self._turn)
        try:
            self._loop.wait_for(partial(entry.begin, threading.current_thread()))
        except BaseException:
            with suppress(RuntimeError):  # the checker was closed in the meantime
                portal.start_task_soon(entry.give_up)
            raise
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """End the turn. Any thread may call this.

        If nothing was reported, an exception may be a report, as for
        `robotsgate.Turn`. Has no effect in a child process.
        """
        with suppress(RuntimeError):  # closed, or belongs to another process
            self._loop.portal.call(self._turn.__aexit__, kind, error, traceback)

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
        self._loop.portal.call(report)


def _in_sync(wrapped: object) -> str:
    return repr(wrapped).replace("robotsgate.", "robotsgate.sync.", 1)


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
            await self._turns.give_back(self._claim)
