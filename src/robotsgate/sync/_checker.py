"""A checker for code that is not asynchronous, from any thread.

An event loop in a daemon thread does the work, and makes and closes all that it uses.
But the thread that asks answers what is known already, because a hop to the loop takes
a hundred times as long.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import warnings
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from anyio.from_thread import BlockingPortal

from robotsgate import Dialect, Policy, SystemClock
from robotsgate import RobotsChecker as _AsyncRobotsChecker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from robotsgate import (
        AsyncClientLike,
        AsyncTransportLike,
        CheckerEvent,
        CheckerStats,
        CheckResult,
        CheckResults,
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


class RobotsChecker:
    """A `robotsgate.RobotsChecker` without `await`: its methods block the thread.

    Any number of threads may use it. Use it as a context manager, or call `close`; the
    interpreter closes an open one when it exits. If you drop an open one, Python warns
    with a ResourceWarning, and its thread ends.
    A child process cannot use the checker of the process that forked it.
    """

    def __init__(
        self,
        *,
        user_agent: str | None = None,
        client: Fetcher | AsyncClientLike | AsyncTransportLike | None = None,
        store: Store | str | None = None,
        policy: Policy = Policy(),
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
        max_concurrent_fetches: int = 100,
        clock: Clock = SystemClock(),
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> None:
        """As `robotsgate.RobotsChecker`, and start the thread of its event loop.

        Two arguments differ: `client` is used in this event loop alone, so it is
        closed with the checker; and `on_event` is called in the thread of the loop.
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
        self._gates: set[AsyncExitStack] = set()  # those that are open
        serving = _serve(
            make,
            client,
            gates=self._gates,
            opened=opened,
            use=self._use,
            closed=self._closed,
        )
        # Not `anyio.from_thread.start_blocking_portal`, whose thread is not a daemon:
        # at exit, the interpreter would wait for it before it calls `_close_all`.
        self._thread = threading.Thread(
            target=asyncio.run, args=(serving,), name="robotsgate", daemon=True
        )
        self._thread.start()
        self._checker, self._way_in = opened.result()
        # Any thread may call it, because it only looks up and counts.
        self._answers = self._checker._answers  # noqa: SLF001 (one package)
        _OPEN.add(self)

    def __del__(self) -> None:
        """Warn if it was never closed, and end its thread."""
        if hasattr(self, "_way_in") and self._thread.is_alive():
            message = f"unclosed {self!r}"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)
            self._use.cancel()  # does not wait, because this may be its thread

    def __enter__(self) -> Self:
        """The checker itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Call `close`."""
        self.close()

    def close(self) -> None:
        """End the fetches under way, and the thread; may be called more than once.

        Each thread that waits for a fetch or a turn, or needs one from now on, gets a
        RuntimeError. Your own store stays open. Does nothing in a child process.
        """
        if self._thread.is_alive():  # a child process has no thread of its parent
            self._use.cancel()
            self._thread.join()
            self._closed.result()

    def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """As `robotsgate.RobotsChecker.can_fetch`."""
        answer = self._answers.at_once(agent, url)
        if answer is None:
            answer = self._portal.call(self._checker.can_fetch, agent, url)
        return answer

    def check(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict:
        """As `robotsgate.RobotsChecker.check`."""
        return self._portal.call(self._checker.check, agent, url)

    def refusal(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict | None:
        """As `robotsgate.RobotsChecker.refusal`."""
        answer = self._answers.at_once(agent, url)
        if answer:
            return None
        # Goes on after that answer, which has been counted.
        refusal = partial(self._answers.refusal, agent, url, answer=answer)
        return self._portal.call(refusal)

    def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[str | URLLike]
    ) -> list[bool]:
        """As `robotsgate.RobotsChecker.can_fetch_many`."""
        return self._portal.call(self._checker.can_fetch_many, agent, urls)

    def check_many(
        self,
        agent: str | Sequence[str],
        urls: Iterable[str | URLLike],
        *,
        window: int = 1_000,
    ) -> Iterator[CheckResult]:
        """As `robotsgate.RobotsChecker.check_many`.

        The thread of the event loop reads `urls`, so `urls` must not block or ask this
        checker.
        """
        check = partial(self._checker.check_many, agent, urls, window=window)
        return self._each(self._portal.call(check))

    def peek(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """As `robotsgate.RobotsChecker.peek`."""
        answer = self._answers.at_once(agent, url)
        if answer is None:
            answer = self._portal.call(self._checker.peek, agent, url)
        return answer

    def robots_txt(self, url: str | URLLike) -> RobotsTxt | None:
        """As `robotsgate.RobotsChecker.robots_txt`."""
        return self._portal.call(self._checker.robots_txt, url)

    def crawl_delay(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> float | None:
        """As `robotsgate.RobotsChecker.crawl_delay`."""
        return self._portal.call(self._checker.crawl_delay, agent, url)

    def request_rate(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> RequestRate | None:
        """As `robotsgate.RobotsChecker.request_rate`."""
        return self._portal.call(self._checker.request_rate, agent, url)

    def usage_preferences(
        self,
        agent: str | Sequence[str],
        url: str | URLLike,
        *,
        headers: HeadersLike | None = None,
    ) -> UsagePreferences:
        """As `robotsgate.RobotsChecker.usage_preferences`."""
        ask = partial(self._checker.usage_preferences, agent, url, headers=headers)
        return self._portal.call(ask)

    def sitemaps(self, url: str | URLLike) -> tuple[str, ...]:
        """As `robotsgate.RobotsChecker.sitemaps`."""
        return self._portal.call(self._checker.sitemaps, url)

    def prefetch(self, urls: Iterable[str | URLLike]) -> None:
        """As `robotsgate.RobotsChecker.prefetch`."""
        self._portal.call(self._checker.prefetch, urls)

    def refresh(self, url: str | URLLike) -> None:
        """As `robotsgate.RobotsChecker.refresh`."""
        self._portal.call(self._checker.refresh, url)

    def forget(self, url: str | URLLike) -> None:
        """As `robotsgate.RobotsChecker.forget`."""
        self._portal.call(self._checker.forget, url)

    def purge(self) -> int | None:
        """As `robotsgate.RobotsChecker.purge`."""
        return self._portal.call(self._checker.purge)

    @property
    def stats(self) -> CheckerStats:
        """The counters as they are now."""
        return self._portal.call(lambda: self._checker.stats)

    @property
    def _portal(self) -> BlockingPortal:
        if not self._thread.is_alive():
            raise RuntimeError("the checker is closed, or belongs to another process")
        return self._way_in

    def _each(self, results: CheckResults) -> Iterator[CheckResult]:
        try:
            while True:
                try:
                    yield self._portal.call(results.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            # Raised in the thread of the loop and after its end: nothing to do then.
            with suppress(RuntimeError):
                self._portal.start_task_soon(results.aclose)


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
    """Make a checker, let it answer until `use` is cancelled, and close it all."""
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
