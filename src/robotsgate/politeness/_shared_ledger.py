"""A ledger for several processes, in a store that they share.

A host's record is stored as bytes. Each start or end of a turn is one `Store.update`,
which applies the rules of `_host_record.py`. This module must not contain rules.

Each process also has a ledger of its own, with its own turns and failures; and it
remembers each shared record as of its last update. So it doesn't contact the store
while it knows that a host is not ready, and it can go on without the store:

    together ──► a call fails, or takes a second ──► alone
        ▲                                              │ each second: a probe
        └──── the ends of turns that are missing ◄─────┘

All calls to the store are flights: a caller that gives up does not interrupt them. The
flight then gives the turn back.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Self

import anyio

from robotsgate._clock import SystemClock
from robotsgate._flights import Flight, Flights
from robotsgate.caching._freshness import with_jitter
from robotsgate.caching._question import check_bound
from robotsgate.checking._arguments import check_store
from robotsgate.checking._reporting import Listener
from robotsgate.errors import StoreError
from robotsgate.events import (
    HostRecordReplaced,
    LedgerFailed,
    LedgerReturned,
)
from robotsgate.politeness._host_record import (
    HostRecord,
    HostState,
    TurnEnd,
    after_attempt,
    after_end,
    after_time,
    as_ended,
    delay_in_force,
    forget_at,
    host_state,
    moved,
    ready_at,
)
from robotsgate.politeness._ledger import Grant, LedgerStatus, LocalLedger, Wait
from robotsgate.politeness._record_codec import RecordError, decode, encode
from robotsgate.stores._base import (
    HOST_PREFIX,
    Store,
    TimedChange,
    TimedStore,
    open_store,
)

if TYPE_CHECKING:
    from os import PathLike

    from robotsgate._clock import Clock
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

# So that rounding does not make a process try again too early.
_TICK = 0.001

_MOST_PROCESSES = 2**53

_UpdateTimed = Callable[[str, TimedChange], Awaitable[None]]

_STATES = (HostState.OPEN, HostState.PROBING, HostState.BLOCKED)


class _Change:
    """A change of a host's record, as a function for a store.

    Attributes:
        record: the record after the last call.
        now: the time of that call, by the store's clock.
        is_replaced: whether the stored record was unreadable then.
    """

    def __init__(
        self,
        pace: Pace,
        rule: Callable[[HostRecord, float], HostRecord],
        *,
        is_known: bool = False,
    ) -> None:
        """Apply `rule` to the record and the time.

        Args:
            pace: the pace of a host without a record.
            rule: a pure function, since a store may call it more than once.
            is_known: whether this process remembers a request to the host.
        """
        self.record = HostRecord(pace)
        self.now = 0.0
        self.is_replaced = False
        self._pace = pace
        self._rule = rule
        self._is_known = is_known

    def __call__(self, data: bytes | None, now: float) -> tuple[bytes, float] | None:
        """The changed record and when it can be dropped; `None` if nothing changes."""
        before, written_at = HostRecord(self._pace), now
        self.is_replaced = False
        try:
            if data is not None:
                written_at, before = decode(data)
        except RecordError:
            self.is_replaced = True
        record = before
        if written_at > now:  # the clock was set back, and the record goes with it
            record = moved(record, now - written_at)
        if self.is_replaced or (data is None and self._is_known):
            # Others may have sent the host a request a moment ago.
            record = record._replace(ended_at=now)
        self.now, self.record = now, self._rule(record, now)
        if self.record == before and not self.is_replaced:
            return None
        return encode(self.record, now), forget_at(self.record)


class _Attempt:
    """One attempt to start a request in the shared record.

    Attributes:
        change: the change for the store.
        tried: the start times of turns that may be in the store; usually none or one,
            but a store may have written an earlier change whose reply was lost.
        seconds: how long to wait before trying again, 0 or less if it has started.
        overdue: how many turns have ended because they were overdue.
        is_wanted: whether the caller is still waiting for the result.
        is_over: whether the store has been called.
    """

    def __init__(
        self, pace: Pace, *, process: int, is_robots_txt: bool, is_known: bool
    ) -> None:
        self.change = _Change(pace, self._after, is_known=is_known)
        self.tried: list[float] = []
        self.seconds = math.inf
        self.overdue = 0
        self.is_wanted = True
        self.is_over = False
        self._pace = pace
        self._process = process
        self._is_robots_txt = is_robots_txt

    def _after(self, record: HostRecord, now: float) -> HostRecord:
        for began_at in self.tried:
            record = after_end(
                record,
                now,
                began_at=began_at,
                end=TurnEnd.UNUSED,
                is_robots_txt=self._is_robots_txt,
            )
        record, self.overdue = after_time(record, now)
        record, self.seconds = after_attempt(
            record,
            now,
            process=self._process,
            pace=self._pace,
            is_robots_txt=self._is_robots_txt,
        )
        if self.seconds <= 0:
            self.tried.append(now)
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a turn.

    Attributes:
        grant: the grant.
        began_at: when the turn started, by the store's clock; several times if only one
            of them is in the store.
        end: how it ended, for the other processes.
        retry_after: as in `Ledger.end`.
        ended_at: when it ended, by this process's clock.
    """

    grant: Grant
    began_at: tuple[float, ...]
    end: TurnEnd
    retry_after: float | None = None
    ended_at: float

    def change(self, seconds_ago: float) -> _Change:
        """The change for the store, `seconds_ago` after the end."""

        def after(record: HostRecord, now: float) -> HostRecord:
            for began_at in self.began_at:
                record = after_end(
                    record,
                    now - seconds_ago,
                    began_at=began_at,
                    end=self.end,
                    is_robots_txt=self.grant.is_robots_txt,
                    retry_after=self.retry_after,
                    jitter=with_jitter(1.0, self.grant.host),
                )
            return record

        return _Change(self.grant.pace, after)


class SharedLedger:
    """A ledger for processes that together are as polite as a single process.

    They share a store: an SQLite file on one machine, or a Redis server for a fleet.
    Processes waiting for a host get their turns in order of arrival. If a process dies,
    its turn stays open until `max_turn_seconds` after its start.

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
        check_store(store)
        self._given = store
        self._store: Store | None = None
        self._update_timed: _UpdateTimed
        self._workers = workers
        self._max_hosts = max_hosts
        self._clock = clock
        self._listener = Listener(on_event, logger=_LOGGER)
        self._process = secrets.randbelow(_MOST_PROCESSES)
        self._own = LocalLedger(max_hosts=max_hosts, clock=clock)
        # The shared records as of their last update here, on this process's clock.
        self._seen: dict[str, HostRecord] = {}
        self._slots = anyio.Semaphore(_MOST_AT_ONCE, fast_acquire=True)
        self._answered_at = -math.inf
        self._is_alone = False
        self._alone_since = math.inf
        # The ends of shared turns that are not in the store yet.
        self._missing: deque[_End] = deque()
        self._running: set[Flight[bool]] = set()
        self._calls: Flights[bool] = Flights(
            "ledger", on_end=lambda _, flight: self._running.discard(flight)
        )
        self._numbers = count()
        self._probes: Flights[bool] = Flights("ledger", others=self._calls)

    async def __aenter__(self) -> Self:
        """Open the store if it was given as a URL or path.

        Raises:
            StoreError: the store cannot be opened.
        """
        store = self._given
        if not isinstance(store, Store):
            store = open_store(store)
            if isinstance(store, AbstractAsyncContextManager):
                await store.__aenter__()
        self._update_timed = _update_timed(store, self._clock)
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
        """
        if self._store is None:
            raise RuntimeError("expected the ledger to be used inside async with")
        if not self._is_alone:
            answer = await self._start_together(host, pace, is_robots_txt=is_robots_txt)
            if answer is not None:
                return answer
        return await self._start_alone(host, pace, is_robots_txt=is_robots_txt)

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """See `Ledger.end`."""
        await self._own.end(grant, end, retry_after=retry_after)
        # For the others, a turn that started without the store counts as later than
        # any incident.
        began_at = math.inf if grant.shared_began_at is None else grant.shared_began_at
        shared = _End(
            grant=grant,
            began_at=(began_at,),
            end=TurnEnd.UNJUDGED if end is TurnEnd.FAILURE else end,
            retry_after=retry_after,
            ended_at=self._clock.monotonic(),
        )
        with suppress(RuntimeError):  # the ledger is closed
            await self._in_time(lambda: self._send(shared))

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """See `Ledger.peek`."""
        now = self._clock.monotonic()
        seen = self._seen_at(host, pace, now)
        pace = self._share(seen, pace)
        own = self._own.peek(host, pace)
        return LedgerStatus(
            state=max(own.state, host_state(seen, now), key=_STATES.index),
            delay=max(own.delay, delay_in_force(seen, pace)),
            under_way=own.under_way,
            wait_seconds=max(own.wait_seconds, ready_at(seen, now, pace=pace) - now),
        )

    async def aclose(self) -> None:
        """See `Ledger.aclose`. Waits for the store for at most a second."""
        deadline = self._clock.monotonic() + _ANSWER_SECONDS
        with anyio.CancelScope(shield=True):
            await self._probes.aclose()
            for flight in tuple(self._running):
                left = deadline - self._clock.monotonic()
                await self._clock.wait(left, event=flight.over_event)
            await self._calls.aclose()
            store, self._store = self._store, None
            if store is not None and store is not self._given:
                await store.aclose()

    async def _start_together(
        self, host: str, pace: Pace, *, is_robots_txt: bool
    ) -> Grant | Wait | None:
        """Start a request in the shared record; `None` if the store does not respond.

        A start that succeeds after the caller has given up is undone.
        """
        now = self._clock.monotonic()
        seen = self._seen_at(host, pace, now)
        # Another process may end an incident, but cannot shorten a block or a delay.
        usual = seen._replace(back_off=0.0, slowed_delay=0.0)
        seconds = ready_at(usual, now, pace=pace) - now
        if seconds > 0:
            return Wait(seconds + _TICK, 0)
        grant = await self._own.start(host, pace, is_robots_txt=is_robots_txt)
        if isinstance(grant, Wait):
            return Wait(grant.seconds, 0)  # the store reports overdue turns
        attempt = _Attempt(
            pace,
            process=self._process,
            is_robots_txt=is_robots_txt,
            is_known=now < forget_at(seen),
        )
        is_done = is_open = False
        try:
            is_done = await self._in_time(lambda: self._send_start(grant, attempt))
            is_open = is_done and attempt.seconds <= 0
        finally:
            if not is_open:
                attempt.is_wanted = False
                await self._own.end(grant, TurnEnd.UNUSED)  # never suspends
                if attempt.is_over and attempt.tried:
                    with suppress(RuntimeError):  # the ledger is closed
                        self._call(lambda: self._give_back(grant, attempt))
        if not is_done:
            return None
        if not is_open:
            return Wait(attempt.seconds + _TICK, attempt.overdue)
        return Grant(
            host,
            pace,
            grant.began_at,
            is_robots_txt,
            attempt.overdue,
            attempt.change.now,
        )

    async def _start_alone(
        self, host: str, pace: Pace, *, is_robots_txt: bool
    ) -> Grant | Wait:
        now = self._clock.monotonic()
        seen = self._seen_at(host, pace, now)
        share = self._share(seen, pace)
        seconds = ready_at(seen, now, pace=share) - now
        answer: Grant | Wait = Wait(seconds, 0)
        if seconds <= 0:
            answer = await self._own.start(host, share, is_robots_txt=is_robots_txt)
        if isinstance(answer, Wait):
            return answer._replace(seconds=min(answer.seconds, _LONGEST_WAIT_ALONE))
        return answer._replace(pace=pace)

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

    async def _in_time(self, work: Callable[[], Awaitable[bool]]) -> bool:
        """Whether `work` has succeeded; it goes on in any case.

        Waits until the store has not responded to any call for a second.
        """
        flight = self._call(work)
        steps = _STEPS
        while steps:
            answered_at = self._answered_at
            with suppress(TimeoutError):
                return await flight.result_within(_ANSWER_SECONDS / _STEPS, self._clock)
            steps = steps - 1 if self._answered_at == answered_at else _STEPS
        message = f"no response within {_ANSWER_SECONDS:g} s"
        self._go_on_alone(TimeoutError(message))
        return False

    def _call(self, work: Callable[[], Awaitable[bool]]) -> Flight[bool]:
        flight = self._calls.begin(next(self._numbers), work)
        self._running.add(flight)
        return flight

    async def _send_start(self, grant: Grant, attempt: _Attempt) -> bool:
        is_done = True
        try:
            await self._update(grant.host, attempt.change)
        except StoreError as error:
            is_done = attempt.is_wanted = False  # but the store may have written it
            self._go_on_alone(error)
        else:
            attempt.tried = attempt.tried[-1:] if attempt.seconds <= 0 else []
        attempt.is_over = True
        if attempt.tried and not attempt.is_wanted:
            await self._give_back(grant, attempt)
        return is_done

    async def _give_back(self, grant: Grant, attempt: _Attempt) -> bool:
        """End the turn that `attempt` has started, because nobody uses it."""
        tried, attempt.tried = tuple(attempt.tried), []
        return await self._send(
            _End(
                grant=grant._replace(shared_began_at=tried[-1]),
                began_at=tried,
                end=TurnEnd.UNUSED,
                ended_at=self._clock.monotonic(),
            )
        )

    async def _send(self, end: _End) -> bool:
        """Report `end` to the other processes, now or once the store is back."""
        if not self._is_alone:
            try:
                await self._send_now(end)
            except StoreError as error:
                self._go_on_alone(error)
            else:
                return True
        if end.grant.shared_began_at is not None:
            self._missing.append(end)
        return False

    async def _send_now(self, end: _End) -> None:
        # Measured before the store reads the time, so that a turn never seems to have
        # ended before it did.
        seconds_ago = self._clock.monotonic() - end.ended_at
        await self._update(end.grant.host, end.change(seconds_ago))

    async def _update(self, host: str, change: _Change) -> None:
        """Apply `change` to the shared record of `host`, and remember the result."""
        async with self._slots:
            await self._update_timed(HOST_PREFIX + host, change)
        self._answered_at = self._clock.monotonic()
        if host not in self._seen and len(self._seen) >= self._max_hosts:
            del self._seen[next(iter(self._seen))]  # the store still knows it
        lag = self._answered_at - change.now
        self._seen[host] = moved(as_ended(change.record), lag)
        if change.is_replaced:
            _LOGGER.warning("replaced an unreadable record for %s", host)
            self._listener.tell(HostRecordReplaced(host=host))

    # --- without the store ----------------------------------------------------------

    def _go_on_alone(self, error: Exception) -> None:
        if self._is_alone:
            return
        self._is_alone = True
        self._alone_since = self._clock.monotonic()
        _LOGGER.warning("ledger continues without its store: %s", error)
        self._listener.tell(LedgerFailed(error=error))
        with suppress(RuntimeError):  # the ledger is closed
            self._probes.begin("probe", self._look_for_store)

    async def _look_for_store(self) -> bool:
        """Keep trying to rejoin the other processes."""
        while self._is_alone:
            await self._clock.wait(_PROBE_SECONDS)
            with suppress(StoreError):
                await self._rejoin()
        return True

    async def _rejoin(self) -> None:
        """Report the turns that ended in the meantime, and rejoin the others.

        Raises:
            StoreError: the store still fails.
        """
        await self._probe()
        while self._missing:
            try:
                await self._send_now(self._missing[0])
            except StoreError:
                await self._probe()  # if it works, the error concerns only this host
            self._missing.popleft()
        self._is_alone = False
        seconds = self._clock.monotonic() - self._alone_since
        _LOGGER.info("ledger reached its store again after %.1f s", seconds)
        self._listener.tell(LedgerReturned(elapsed_seconds=seconds))

    async def _probe(self) -> None:
        """Write something that expires at once, for a host without a name."""
        await self._update_timed(HOST_PREFIX, lambda _, now: (b"", now))


def _update_timed(store: Store, clock: Clock) -> _UpdateTimed:
    """The `update_timed` of `store`; by `clock` if the store has no clock."""
    timed: object = store
    if isinstance(timed, TimedStore):
        return timed.update_timed

    async def update(key: str, change: TimedChange) -> None:
        await store.update(key, lambda data: change(data, clock.now()))

    return update
