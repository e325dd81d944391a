"""A ledger for several processes, in a store that they share.

A host's record is stored as bytes. Each start or end of a turn is one `Store.update`,
which applies the rules of `_host_record.py`. This module must not contain rules.

Each process also has a ledger of its own, with its own turns and failures; and it
remembers each shared record as of its last update. So it doesn't contact the store
while it knows that a host is not ready, and it can go on without the store:

    together ──► a call fails, or takes a second ──► alone
        ▲                                              │ each second: a probe
        └──── the ends of turns that are missing ◄─────┘

All calls to the store are flights: a caller that gives up does not interrupt them.
Another flight then gives the turn back.
"""

from __future__ import annotations

import logging
import math
import secrets
from abc import abstractmethod
from collections import deque
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, cast

import anyio

from robotsgate._clock import SystemClock
from robotsgate._flights import Flights, finish
from robotsgate._public import set_module
from robotsgate.caching._freshness import with_jitter
from robotsgate.caching._question import check_bound
from robotsgate.checking._reporting import Listener
from robotsgate.errors import StoreError, UnsupportedError
from robotsgate.events import HostRecordReplaced, LedgerFailed, LedgerReturned
from robotsgate.politeness._host_record import (
    NEVER,
    HostRecord,
    HostState,
    TurnEnd,
    after_attempt,
    after_end,
    after_time,
    as_ended,
    decode,
    delay_in_force,
    encode,
    forget_at,
    host_state,
    moved,
    ready_at,
    without_incidents,
)
from robotsgate.politeness._ledger import Grant, LedgerStatus, LocalLedger, Wait
from robotsgate.stores._base import (
    HOST_PREFIX,
    Store,
    TimedChange,
    TimedStore,
    check_store,
)
from robotsgate.stores._url import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from os import PathLike

    from robotsgate._clock import Clock
    from robotsgate._flights import Flight
    from robotsgate.events import LedgerEvent
    from robotsgate.politeness._host_record import Pace

_LOGGER = logging.getLogger("robotsgate.politeness")

# How long a call waits for the store before this process continues without it.
_ANSWER_SECONDS = 1.0

# In this many steps, because a single step expires late if the event loop is busy or
# the process is stopped; the response may already be there.
_STEPS = 4

# How many calls may be waiting for the store at once. SQLite does all of them in one
# transaction, and other processes have to wait for it.
_MOST_AT_ONCE = 60

# Without its store, a process tries to reach it this many seconds after each failure.
# Waiting callers try again soon, because together, the processes may be faster.
_PROBE_SECONDS = 1.0
_LONGEST_WAIT_ALONE = 5.0
_PROBE = "probe"

# So that rounding does not make a process try again too early.
_TICK = 0.001


@dataclass(slots=True, kw_only=True)
class _Change:
    """A change of a host's record, as a function for a store.

    Attributes:
        grant: permission from this process's own ledger; for a `_Forget`, only its
            host and its pace are used.
        is_known: whether this process remembers a request to the host.
        called_at: when the store was last called, by this process's clock.
        now: the time of the last change, by the store's clock.
        record: the record after the last change.
        is_replaced: whether the stored record was unreadable then.
    """

    grant: Grant
    is_known: bool = False
    called_at: float = NEVER
    now: float = NEVER
    record: HostRecord = field(init=False)
    is_replaced: bool = False

    def __call__(self, data: bytes | None, now: float) -> tuple[bytes, float] | None:
        """The changed record and when it can be dropped; `None` if nothing changes."""
        stored = None if data is None else decode(data)
        written_at, before = stored or (now, HostRecord(self.grant.pace))
        self.is_replaced = data is not None and stored is None
        record = before
        if written_at > now:  # the clock was set back, and the record goes with it
            record = moved(record, now - written_at)
        if self.is_replaced or (data is None and self.is_known):
            # Others may have sent the host a request a moment ago.
            record = record._replace(ended_at=now)
        self.now, self.record = now, self.after(record, now)
        if self.record == before and not self.is_replaced:
            return None
        return encode(self.record, now), forget_at(self.record)

    @abstractmethod
    def after(self, record: HostRecord, now: float) -> HostRecord:
        """The next record; a store may call this more than once."""


@dataclass(slots=True, kw_only=True)
class _Start(_Change):
    """An attempt to start a request.

    Attributes:
        began_at: when the turn started, by the store's clock; `None` if it has not. It
            may be in the store even if the store has failed.
        seconds: how long to wait before trying again; 0 or less if it has started.
        overdue: as in `Grant`.
    """

    process: int
    began_at: float | None = None
    seconds: float = math.inf
    overdue: int = 0

    def after(self, record: HostRecord, now: float) -> HostRecord:
        record, self.overdue = after_time(record, now)
        if self.began_at in (*record.turns, record.fetch_began_at):
            return record  # an earlier change was written, but its reply was lost
        record, self.seconds = after_attempt(
            record,
            now,
            process=self.process,
            pace=self.grant.pace,
            is_robots_txt=self.grant.is_robots_txt,
        )
        self.began_at = now if self.seconds <= 0 else None
        return record


@dataclass(slots=True, kw_only=True)
class _End(_Change):
    """The end of a turn, at `ended_at` by this process's clock."""

    end: TurnEnd
    ended_at: float
    retry_after: float | None = None

    def after(self, record: HostRecord, now: float) -> HostRecord:
        began_at = self.grant.shared_began_at
        return after_end(
            record,
            # The store reads the time after the call, so that a turn never seems to
            # have ended before it did.
            now - (self.called_at - self.ended_at),
            # For the others, a turn that started without the store counts as later
            # than any incident.
            began_at=math.inf if began_at is None else began_at,
            end=self.end,
            is_robots_txt=self.grant.is_robots_txt,
            retry_after=self.retry_after,
            jitter=with_jitter(1.0, self.grant.host),
        )


class _Forget(_Change):
    """The host's incidents are forgotten."""

    def after(self, record: HostRecord, now: float) -> HostRecord:  # noqa: ARG002 (the others')
        return without_incidents(record)


@set_module("robotsgate")
class SharedLedger:
    """A ledger that makes several processes together as polite as a single one.

    The processes share a store: an SQLite file on one machine, or a Redis server for a
    fleet. Processes waiting for a host get their turns in order of arrival. If a
    process dies, its turn stays open until `max_turn_seconds` after the turn started.

    If the store fails or does not respond within a second, this process continues with
    what it knows about the hosts, and multiplies their delays by `workers`. Turns then
    do not wait for the store; one task keeps trying to reach it.

    A host that asks for fewer requests (429, 503) is blocked for all processes. A host
    that fails without a status is blocked in the process that saw the failure.

    Use it as an async context manager around the gates.
    """

    def __init__(
        self,
        store: Store | str | PathLike[str],
        *,
        workers: int,
        max_hosts: int = 100_000,
        clock: Clock = SystemClock(),
        on_event: Callable[[LedgerEvent], object] | None = None,
    ) -> None:
        """Create a ledger without opening its store.

        Args:
            store: a store, which stays open; or the URL or path of a store, as for
                `open_store`, which the ledger opens and closes. The store may also be
                a checker's.
            workers: the maximum number of processes that share the store, ≥ 1; a
                process that cannot reach the store multiplies its delays by this
                number.
            max_hosts: how many hosts this process remembers, as for `LocalLedger`.
            clock: the gates' clock.
            on_event: called with each `LedgerEvent`; it must not block. Exceptions that
                it raises are logged.

        Raises:
            StoreError: `store` is not a store.
            TypeError: `workers` or `max_hosts` is not an int, or `on_event` is not
                callable or is a coroutine function.
            ValueError: `workers` or `max_hosts` is below 1.
        """
        check_bound("workers", workers)
        check_store(store, is_required=True)
        self._given = store
        self._store: Store | None = None
        self._workers = workers
        self._max_hosts = max_hosts
        self._clock = clock
        self._listener = Listener(on_event, logger=_LOGGER)
        self._process = secrets.randbelow(2**53)
        self._own = LocalLedger(max_hosts=max_hosts, clock=clock)
        # The shared records as of their last update here, on this process's clock.
        self._seen: dict[str, HostRecord] = {}
        self._slots = anyio.Semaphore(_MOST_AT_ONCE, fast_acquire=True)
        self._calls: Flights[bool] = Flights("ledger")
        self._answered_at = -math.inf
        self._is_alone = False
        # The ends of shared turns, and what was forgotten, that the store lacks.
        self._missing: deque[_End | _Forget] = deque()

    async def __aenter__(self) -> Self:
        """Open the store if it was given as a URL or path.

        Raises:
            StoreError: the store cannot be opened.
            UnsupportedError: the store does not work on this event loop.
        """
        store = self._given
        if not isinstance(store, Store):
            store = open_store(store)
            if isinstance(store, AbstractAsyncContextManager):
                await store.__aenter__()
        self._store = store
        return self

    async def __aexit__(self, *_: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        """See `Ledger.start`.

        Raises:
            RuntimeError: the ledger is not being used as a context manager.
            UnsupportedError: the store does not work on this event loop.
        """
        self._check_open()
        answer = await self._start_own(host, pace, is_robots_txt=is_robots_txt)
        if self._is_alone or isinstance(answer, Wait):
            return answer
        now = self._clock.monotonic()
        start = _Start(
            grant=answer,
            is_known=now < forget_at(self._seen_at(host, pace, now)),
            process=self._process,
        )
        if not await self._start_shared(start):
            return await self.start(host, pace, is_robots_txt=is_robots_txt)  # alone
        if start.seconds > 0:
            return Wait(start.seconds + _TICK, start.overdue)
        return answer._replace(
            overdue=start.overdue, shared_began_at=start.began_at, forgotten=0
        )

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """See `Ledger.end`."""
        await self._own.end(grant, end, retry_after=retry_after)
        if end is TurnEnd.FAILURE:  # only this process backs off
            end, retry_after = TurnEnd.UNJUDGED, None
        now = self._clock.monotonic()
        change = _End(grant=grant, end=end, ended_at=now, retry_after=retry_after)
        await self._report_in_time(change)

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """See `Ledger.peek`."""
        now = self._clock.monotonic()
        seen = self._seen_at(host, pace, now)
        pace = self._share(seen, pace)
        own = self._own.peek(host, pace)
        return LedgerStatus(
            state=max(own.state, host_state(seen, now), key=list(HostState).index),
            delay=max(own.delay, delay_in_force(seen, pace)),
            under_way=own.under_way,
            wait_seconds=max(own.wait_seconds, ready_at(seen, now, pace=pace) - now),
        )

    async def forget(self, host: str, pace: Pace) -> None:
        """See `Ledger.forget`.

        Raises:
            RuntimeError: the ledger is not being used as a context manager.
        """
        self._check_open()
        await self._own.forget(host, pace)
        seen = self._seen.get(host)
        if seen is not None:  # the store may not respond
            self._seen[host] = without_incidents(seen)
        now = self._clock.monotonic()
        grant = Grant(host, pace, now, is_robots_txt=False, overdue=0)
        await self._report_in_time(_Forget(grant=grant))

    async def aclose(self) -> None:
        """See `Ledger.aclose`. Waits for the store for at most a second."""
        await finish(self._close)

    async def _close(self) -> None:
        await self._calls.end(_PROBE)
        await self._calls.settle(_ANSWER_SECONDS, self._clock)
        await self._calls.aclose()
        store, self._store = self._store, None
        if store is not None and store is not self._given:
            await store.aclose()

    def _check_open(self) -> None:
        if self._store is None:
            raise RuntimeError("expected the ledger to be used inside async with")

    async def _start_own(
        self, host: str, pace: Pace, *, is_robots_txt: bool
    ) -> Grant | Wait:
        """Start a request as far as this process knows. Never suspends."""
        now = self._clock.monotonic()
        seen = self._seen_at(host, pace, now)
        share = self._share(seen, pace)
        seconds = ready_at(seen, now, pace=share) - now
        answer: Grant | Wait = Wait(seconds + _TICK, 0)
        if seconds <= 0:
            answer = await self._own.start(host, share, is_robots_txt=is_robots_txt)
        if not self._is_alone:
            return answer._replace(overdue=0)  # the store reports overdue turns
        if isinstance(answer, Wait):
            return answer._replace(seconds=min(answer.seconds, _LONGEST_WAIT_ALONE))
        return answer._replace(pace=pace)

    async def _start_shared(self, start: _Start) -> bool:
        """Apply `start`, and return whether the store responds in time.

        Otherwise, or if the caller gives up, the turn is given back.
        """
        is_done = is_open = False
        flight = self._begin(lambda: self._update(start))
        try:
            is_done = await self._in_time(flight)
            is_open = is_done and start.seconds <= 0
        finally:
            if not is_open:
                await self._own.end(start.grant, TurnEnd.UNUSED)  # never suspends
            if not is_done:
                with suppress(RuntimeError):  # the ledger is closed
                    self._begin(lambda: self._give_back(start, flight))
        return is_done

    async def _give_back(self, start: _Start, flight: Flight[bool]) -> bool:
        """End the turn that `start` has started by the end of its `flight`."""
        await flight.over_event.wait()
        if start.began_at is None:
            return False
        grant = start.grant._replace(shared_began_at=start.began_at)
        now = self._clock.monotonic()
        return await self._report(_End(grant=grant, end=TurnEnd.UNUSED, ended_at=now))

    def _share(self, seen: HostRecord, pace: Pace) -> Pace:
        """The pace for this process: without the store, its share of `pace`."""
        if not self._is_alone:
            return pace
        return replace(
            pace,
            delay=self._workers * delay_in_force(seen, pace),
            max_at_once=max(1, pace.max_at_once // self._workers),
            max_delay=self._workers * pace.max_delay,
        )

    def _seen_at(self, host: str, pace: Pace, now: float) -> HostRecord:
        """The shared record of `host` as this process knows it, without open turns."""
        record = self._seen.get(host)
        return HostRecord(pace) if record is None else after_time(record, now)[0]

    # --- calls to the store ---------------------------------------------------------

    def _begin(self, work: Callable[[], Awaitable[bool]]) -> Flight[bool]:
        return self._calls.begin(object(), work)

    async def _in_time(self, flight: Flight[bool]) -> bool:
        """Whether `flight` has reached the store; it goes on in any case.

        Waits until the store has not responded to any call for a second.
        """
        steps = _STEPS
        while steps:
            answered_at = self._answered_at
            with suppress(TimeoutError):
                return await flight.result_within(_ANSWER_SECONDS / _STEPS, self._clock)
            steps = steps - 1 if self._answered_at == answered_at else _STEPS
        message = f"no response within {_ANSWER_SECONDS:g} s"
        self._go_on_alone(TimeoutError(message))
        return False

    async def _report_in_time(self, change: _End | _Forget) -> None:
        with suppress(RuntimeError):  # the ledger is closed
            await self._in_time(self._begin(lambda: self._report(change)))

    async def _report(self, change: _End | _Forget) -> bool:
        """Report `change` to the other processes, now or once the store is back."""
        is_done = not self._is_alone and await self._update(change)
        is_shared = change.grant.shared_began_at is not None
        if not is_done and (is_shared or isinstance(change, _Forget)):
            self._missing.append(change)
        return is_done

    async def _update(self, change: _Change) -> bool:
        """Apply `change` to the shared record of its host, and remember the result.

        Returns whether the store has not failed.
        """
        host = change.grant.host
        try:
            async with self._slots:
                change.called_at = self._clock.monotonic()
                await self._update_timed(HOST_PREFIX + host, change)
        except StoreError as error:
            self._go_on_alone(error)
            return False
        self._answered_at = self._clock.monotonic()
        if host not in self._seen and len(self._seen) >= self._max_hosts:
            del self._seen[next(iter(self._seen))]  # the store still knows it
        lag = self._answered_at - change.now
        self._seen[host] = moved(as_ended(change.record), lag)
        if change.is_replaced:
            _LOGGER.warning("replaced an unreadable record for %s", host)
            self._listener.tell(HostRecordReplaced(host=host))
        return True

    async def _update_timed(self, key: str, change: TimedChange) -> None:
        """Call the store's `update_timed`; without one, use the ledger's clock.

        Any error of the store, which may be somebody else's, becomes a StoreError.
        """
        store: object = self._store
        now = self._clock.now
        try:
            if isinstance(store, TimedStore):
                await store.update_timed(key, change)
            else:
                await cast("Store", store).update(key, lambda data: change(data, now()))
        except (StoreError, UnsupportedError):
            raise
        except Exception as error:
            raise StoreError(f"the store failed: {error!r}") from error

    # --- without the store ----------------------------------------------------------

    def _go_on_alone(self, error: Exception) -> None:
        if self._is_alone:
            return
        self._is_alone = True
        _LOGGER.warning("ledger continues without its store: %s", error)
        self._listener.tell(LedgerFailed(error=error))
        with suppress(RuntimeError):  # the ledger is closed
            self._calls.begin(_PROBE, self._rejoin)

    async def _rejoin(self) -> bool:
        """Rejoin the other processes once the store works again."""
        alone_since = self._clock.monotonic()
        while self._is_alone:
            await self._clock.wait(_PROBE_SECONDS)
            with suppress(StoreError):
                await self._report_missing()
                self._is_alone = False
        seconds = self._clock.monotonic() - alone_since
        _LOGGER.info("ledger reached its store again after %.1f s", seconds)
        self._listener.tell(LedgerReturned(elapsed_seconds=seconds))
        return True

    async def _report_missing(self) -> None:
        """Report what has happened in the meantime, if the store works again."""
        await self._probe()
        while self._missing:
            if not await self._update(self._missing[0]):
                await self._probe()  # if it works, the error concerns only this host
            self._missing.popleft()

    async def _probe(self) -> None:
        """Write something that expires at once, for a host without a name."""
        await self._update_timed(HOST_PREFIX, lambda _, now: (b"", now))
