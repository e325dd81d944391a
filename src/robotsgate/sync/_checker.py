"""A checker for synchronous code, usable from any thread.

The work is done by an event loop in a daemon thread, which also creates and closes all
resources. Cached lookups are done in the calling thread, because switching to the loop
takes a hundred times as long.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import warnings
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Self
from weakref import WeakSet

from anyio.from_thread import BlockingPortal

from robotsgate import Dialect, Policy, SystemClock
from robotsgate import RobotsChecker as _AsyncRobotsChecker

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from os import PathLike

    from robotsgate import (
        AsyncClientLike,
        AsyncTransportLike,
        CheckResult,
        Clock,
        Fetcher,
        HeadersLike,
        RequestRate,
        RobotsTxt,
        Store,
        URLLike,
        UsagePreferences,
        Verdict,
    )
    from robotsgate.events import CheckerEvent, CheckerStats


class RobotsChecker:
    """A blocking version of `robotsgate.RobotsChecker`.

    Any number of threads may share a checker. Use it as a context manager, or call
    `close`. A checker that is still open is closed when the interpreter exits. If it is
    garbage collected while open, it emits a ResourceWarning, and its thread ends. It
    cannot be used in a forked child process.
    """

    def __init__(
        self,
        *,
        user_agent: str | None = None,
        client: Fetcher | AsyncClientLike | AsyncTransportLike | None = None,
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
        closes `client`, which can only be used in this event loop, and `on_event` is
        called in the event loop's thread.
        """
        make = partial(
            _AsyncRobotsChecker,
            user_agent=user_agent,
            client=client,
            store=store,
            policy=policy,
            dialect=dialect,
            max_origins=max_origins,
            max_concurrent_fetches=max_concurrent_fetches,
            clock=clock,
            overrides=overrides,
            on_event=on_event,
        )
        opened: Future[tuple[_AsyncRobotsChecker, BlockingPortal]] = Future()
        self._use: Future[None] = Future()
        self._closed: Future[None] = Future()
        self._gates: set[AsyncExitStack] = set()  # the open ones
        serving = _serve(
            make,
            client,
            gates=self._gates,
            opened=opened,
            use=self._use,
            closed=self._closed,
        )
        # Not `anyio.from_thread.start_blocking_portal`, whose thread is not a daemon:
        # at exit, the interpreter would wait for it before calling `_close_all`.
        self._thread = threading.Thread(
            target=asyncio.run, args=(serving,), name="robotsgate", daemon=True
        )
        self._thread.start()
        self._checker, self._way_in = opened.result()
        # Safe in any thread, because it only does lookups and counts them.
        self._answers = self._checker._answers  # noqa: SLF001 (same package)
        _OPEN.add(self)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, like a checker."""
        _AsyncRobotsChecker.__reduce__(self)

    def __del__(self) -> None:
        """Warn if the checker was not closed, and end its thread."""
        if hasattr(self, "_way_in") and self._thread.is_alive():
            message = f"unclosed {self!r}"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)
            self._use.cancel()  # without waiting, because this may be its thread

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
        if self._thread.is_alive():  # a child process does not have the thread
            self._use.cancel()
            self._thread.join()
            self._closed.result()

    def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """See `robotsgate.RobotsChecker.can_fetch`."""
        answer = self._answers.at_once(agent, url)
        if answer is None:
            answer = self._portal.call(self._checker.can_fetch, agent, url)
        return answer

    def check(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict:
        """See `robotsgate.RobotsChecker.check`."""
        return self._portal.call(self._checker.check, agent, url)

    def refusal(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict | None:
        """See `robotsgate.RobotsChecker.refusal`."""
        answer = self._answers.at_once(agent, url)
        if answer:
            return None
        # Continue after that lookup, which has already been counted.
        refusal = partial(self._answers.refusal, agent, url, answer=answer)
        return self._portal.call(refusal)

    def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[str | URLLike]
    ) -> list[bool]:
        """See `robotsgate.RobotsChecker.can_fetch_many`."""
        return self._portal.call(self._checker.can_fetch_many, agent, urls)

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
        return self._each(self._portal.call(check))

    def peek(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """See `robotsgate.RobotsChecker.peek`."""
        answer = self._answers.at_once(agent, url)
        if answer is None:
            answer = self._portal.call(self._checker.peek, agent, url)
        return answer

    def robots_txt(self, url: str | URLLike) -> RobotsTxt | None:
        """See `robotsgate.RobotsChecker.robots_txt`."""
        return self._portal.call(self._checker.robots_txt, url)

    def crawl_delay(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> float | None:
        """See `robotsgate.RobotsChecker.crawl_delay`."""
        return self._portal.call(self._checker.crawl_delay, agent, url)

    def request_rate(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> RequestRate | None:
        """See `robotsgate.RobotsChecker.request_rate`."""
        return self._portal.call(self._checker.request_rate, agent, url)

    def usage_preferences(
        self,
        agent: str | Sequence[str],
        url: str | URLLike,
        *,
        headers: HeadersLike | None = None,
    ) -> UsagePreferences:
        """See `robotsgate.RobotsChecker.usage_preferences`."""
        ask = partial(self._checker.usage_preferences, agent, url, headers=headers)
        return self._portal.call(ask)

    def sitemaps(self, url: str | URLLike) -> tuple[str, ...]:
        """See `robotsgate.RobotsChecker.sitemaps`."""
        return self._portal.call(self._checker.sitemaps, url)

    def prefetch(self, urls: Iterable[str | URLLike]) -> None:
        """See `robotsgate.RobotsChecker.prefetch`."""
        self._portal.call(self._checker.prefetch, urls)

    def refresh(self, url: str | URLLike) -> None:
        """See `robotsgate.RobotsChecker.refresh`."""
        self._portal.call(self._checker.refresh, url)

    def forget(self, url: str | URLLike) -> None:
        """See `robotsgate.RobotsChecker.forget`."""
        self._portal.call(self._checker.forget, url)

    def purge(self) -> int | None:
        """See `robotsgate.RobotsChecker.purge`."""
        return self._portal.call(self._checker.purge)

    @property
    def stats(self) -> CheckerStats:
        """The current counters."""
        return self._portal.call(lambda: self._checker.stats)

    @property
    def _portal(self) -> BlockingPortal:
        if not self._thread.is_alive():
            raise RuntimeError("the checker is closed, or belongs to another process")
        return self._way_in

    def _each(self, results: AsyncIterator[CheckResult]) -> Iterator[CheckResult]:
        with suppress(StopAsyncIteration):
            while True:
                yield self._portal.call(results.__anext__)


_OPEN: WeakSet[RobotsChecker] = WeakSet()


@atexit.register
def _close_all() -> None:
    for checker in list(_OPEN):
        checker.close()


async def _serve(
    make: Callable[[], _AsyncRobotsChecker],
    client: object,
    *,
    gates: set[AsyncExitStack],
    opened: Future[tuple[_AsyncRobotsChecker, BlockingPortal]],
    use: Future[None],
    closed: Future[None],
) -> None:
    """Create a checker, run it until `use` is cancelled, and then close everything."""
    async with BlockingPortal() as portal:
        try:
            async with AsyncExitStack() as contexts:
                checker = make()
                close_client = getattr(client, "aclose", None)
                if close_client is not None:
                    contexts.push_async_callback(close_client)
                await contexts.enter_async_context(checker)
                opened.set_result((checker, portal))
                with suppress(asyncio.CancelledError):
                    await asyncio.wrap_future(use)
                for gate in gates:
                    contexts.push_async_exit(gate)  # so gates are closed first
            closed.set_result(None)
        except BaseException as error:  # noqa: BLE001 (raised to the caller)
            (closed if opened.done() else opened).set_exception(error)
