"""Decides when the next request to a host may start.

Pure: a host's state is a record of numbers, each rule is a function of the record
and the time, and nothing here waits. All times in a record must come from the same
clock, which must never go backwards.

The rules:

- A request starts at least `delay_in_force` after the end of the last request and, if
  several may be open at once, at least that long after the start of the last one. After
  a slow request, the wait is at least `delay_factor` times the request's duration, up
  to `max_delay`.
- The Retry-After of any response except a 2xx or 304 delays the next request.
- At most `Pace.max_at_once` turns are open at once. A robots.txt fetch doesn't count
  towards this limit, since an open turn may be waiting for it. While such a fetch is
  running, nothing else starts.
- A turn older than `Pace.max_turn_seconds` is considered over.
- An incident blocks the host and doubles its delay. After the block, one request at a
  time probes the host. The first good response ends the probing, and each good response
  shortens the delay.
- After `forget_at`, a record has no effect and can be dropped.

Processes that share a record (`_shared_ledger.py`) follow one more rule: they get their
turns in order of arrival. A process that must wait joins the record's queue, and tries
again when the processes ahead of it should have had their turns. If it is late, it
loses its place.

A store keeps a record as bytes: a version (1 byte), a CRC-32 of what follows (4 bytes),
and doubles: when the record was written, the fields of the pace, those of the record,
the number of open turns and their start times, and the pairs in the queue.
"""

from __future__ import annotations

import enum
import math
import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from robotsgate._public import set_module

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robotsgate.robotstxt._model import RequestRate

NEVER = -math.inf

# The first and the longest block without a Retry-After, in seconds: the same as the
# default retry delays for an unreachable robots.txt.
FIRST_BACK_OFF = 60.0
LONGEST_BACK_OFF = 3_600.0

# How long an incident slows an unused host after its block, in seconds.
INCIDENT_MEMORY = 3_600.0

# A delay of 0 cannot be doubled.
SMALLEST_SLOWED_DELAY = 1.0
SLOW_DOWN = 2.0
SPEED_UP = 0.8

# How often to try again if a host without a delay is busy, in seconds.
SHORTEST_WAIT_FOR_PLACE = 0.05

# How late a process may try again without losing its place, in seconds.
LATENESS = 1.0

# The maximum wait for the processes ahead in the queue, in seconds: all of them may
# have died.
LONGEST_WAIT_FOR_OTHERS = 60.0

# The expected duration of a turn grows by at most this factor with each turn, so that
# it stays near the minimum: a process that expects long turns tries too late.
LENGTHENING = 1.05

_VERSION = b"\x01"
_FRAME = struct.Struct(">cI")
_BYTES_OF_A_NUMBER = 8
_NUMBERS_BEFORE_TURNS = 15


@set_module("robotsgate.politeness")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The limits for requests to one host, not counting the effect of incidents.

    Attributes:
        delay: seconds between requests, 0 to `max_delay`.
        max_at_once: the maximum number of open turns, ≥ 1.
        max_delay: the maximum delay, even after an incident, in seconds, ≥ 0.
        max_turn_seconds: the age at which a turn is considered over, > 0.
        delay_factor: the delay is at least this factor times the duration of the last
            request, up to `max_delay`; ≥ 0.
    """

    delay: float
    max_at_once: int
    max_delay: float
    max_turn_seconds: float
    delay_factor: float = 0.0


@set_module("robotsgate.politeness")
class TurnEnd(enum.Enum):
    """How a turn ended."""

    GOOD = "good"
    """The host responded normally."""
    INCIDENT = "incident"
    """The host asked for fewer requests (429, 503)."""
    FAILURE = "failure"
    """There was no usable response, so only this process backs off from the host."""
    UNJUDGED = "unjudged"
    """There may have been a request, but its result is unknown."""
    UNUSED = "unused"
    """There was no request."""

    @property
    def is_incident(self) -> bool:
        """Whether the gate backs off from the host."""
        return self is TurnEnd.INCIDENT or self is TurnEnd.FAILURE


@set_module("robotsgate.politeness")
class HostState(enum.Enum):
    """A host's state with respect to incidents, from the best to the worst."""

    OPEN = "open"
    PROBING = "probing"
    """After a block, one request at a time starts until there is a good response."""
    BLOCKED = "blocked"
    """No request starts, because of an incident."""


class HostRecord(NamedTuple):
    """The state of one host; all times are in seconds.

    It is a tuple, because each turn creates two records, and a frozen dataclass would
    take four times as long. `_replace` takes twice as long, so it is used only in rare
    cases.

    Attributes:
        pace: the pace when the last request started.
        ended_at: when the last request ended, or `NEVER`.
        turns: when each open turn started, in order; may be empty.
        fetch_began_at: when the running robots.txt fetch started, or `NEVER`.
        rest_until: when `delay_factor` and Retry-After permit the next request, or
            `NEVER`.
        incident_at: when the last incident was counted, or `NEVER`.
        blocked_until: when the last block ends or ended, or `NEVER`.
        back_off: how long the last incident blocks the host if there is no Retry-After;
            0 if there has been a good response since.
        slowed_delay: the delay caused by incidents; 0 if there is none.
        queue: the waiting processes, as pairs (process, when it loses its place); may
            be empty, and always is unless processes share the record.
        turn_seconds: how long a turn should take, for those who wait; 0 if unknown.
    """

    pace: Pace
    ended_at: float = NEVER
    turns: tuple[float, ...] = ()
    fetch_began_at: float = NEVER
    rest_until: float = NEVER
    incident_at: float = NEVER
    blocked_until: float = NEVER
    back_off: float = 0.0
    slowed_delay: float = 0.0
    queue: tuple[tuple[int, float], ...] = ()
    turn_seconds: float = 0.0


def stated_delay(
    crawl_delay: float | None, request_rate: RequestRate | None
) -> float | None:
    """The delay that a robots.txt asks for, in seconds, or `None`.

    May be longer than `max_delay`.
    """
    delays = [] if crawl_delay is None else [crawl_delay]
    if request_rate is not None:
        delays.append(request_rate.seconds / request_rate.requests)
    return max(delays, default=None)


def pace_of(
    origins: Iterable[tuple[float | None, RequestRate | None]], usual: Pace
) -> Pace:
    """The pace of a host.

    A host with a crawl-delay gets one request at a time.

    Args:
        origins: the crawl-delay and request rate for the agent at each of the host's
            origins; may be empty.
        usual: the pace of a host without any.
    """
    origins = tuple(origins)
    stated = (stated_delay(*origin) or 0.0 for origin in origins)
    has_crawl_delay = any(crawl_delay is not None for crawl_delay, _ in origins)
    return replace(
        usual,
        delay=min(max((usual.delay, *stated)), usual.max_delay),
        max_at_once=1 if has_crawl_delay else usual.max_at_once,
    )


def ready_at(
    record: HostRecord, now: float, *, pace: Pace, is_robots_txt: bool = False
) -> float:
    """The earliest time at which the next request may start.

    If this is not after `now`, the request may start now; `record` must be up to date
    (see `after_time`).

    If the host has its maximum number of open turns, this assumes that one of them ends
    immediately. Trying again at that time is never too late, because a delay follows
    the end of each turn; without a delay, it may be `SHORTEST_WAIT_FOR_PLACE` too late.
    """
    delay = delay_in_force(record, pace)
    last_at = max(record.ended_at, record.fetch_began_at, *record.turns)
    moment = max(last_at + delay, record.rest_until, record.blocked_until)
    if _has_place(record, pace, is_robots_txt=is_robots_txt):
        return moment
    return max(moment, now + max(delay, SHORTEST_WAIT_FOR_PLACE))


def after_start(
    record: HostRecord, now: float, *, pace: Pace, is_robots_txt: bool = False
) -> HostRecord:
    """The record after the start of a request that `ready_at` has permitted."""
    turns, fetch_began_at = record.turns, record.fetch_began_at
    if is_robots_txt:
        fetch_began_at = now
    else:
        turns = (*turns, now)
    return HostRecord(pace, record.ended_at, turns, fetch_began_at, *record[4:])


def after_end(
    record: HostRecord,
    now: float,
    *,
    began_at: float,
    end: TurnEnd,
    is_robots_txt: bool = False,
    retry_after: float | None = None,
    jitter: float = 1.0,
) -> HostRecord:
    """The record after the end of a turn that started at `began_at`.

    For an overdue turn, which was already considered over, this is its actual end.

    `retry_after` is the Retry-After in seconds, already capped; it is negative for a
    date in the past. `jitter` (≥ 1) lengthens a block without a Retry-After. It is
    fixed for each host, so that hosts that failed at the same time are retried at
    different times.
    """
    turns, fetch_began_at = record.turns, record.fetch_began_at
    if is_robots_txt:
        fetch_began_at = NEVER if fetch_began_at == began_at else fetch_began_at
    elif began_at in turns:
        place = turns.index(began_at)
        turns = turns[:place] + turns[place + 1 :]
        if record.queue and end is not TurnEnd.UNUSED:
            record = _after_duration(record, now - began_at)
    pace, ended_at, rest_until = record.pace, record.ended_at, record.rest_until
    if end is not TurnEnd.UNUSED:
        ended_at = max(ended_at, now)
        if pace.delay_factor > 0:
            rest = min(pace.delay_factor * (now - began_at), pace.max_delay)
            rest_until = max(rest_until, now + rest)
    if retry_after is not None and not end.is_incident:
        rest_until = max(rest_until, now + retry_after)
    record = HostRecord(pace, ended_at, turns, fetch_began_at, rest_until, *record[5:])
    if end.is_incident:
        return _after_incident(
            record, now, began_at=began_at, retry_after=retry_after, jitter=jitter
        )
    if end is TurnEnd.GOOD and record.back_off + record.slowed_delay > 0:
        return _after_good_answer(record, began_at)
    return record


def after_time(record: HostRecord, now: float) -> tuple[HostRecord, int]:
    """The record at `now`, and how many overdue turns have ended.

    After `forget_at`, this is an empty record.
    """
    under_way = (*record.turns, record.fetch_began_at)
    if under_way == (NEVER,) and record.blocked_until == NEVER:
        return record, 0  # the usual case: nothing changes
    seconds = record.pace.max_turn_seconds
    overdue = [at for at in under_way if at > NEVER and at + seconds <= now]
    if now >= forget_at(record):
        return HostRecord(record.pace), len(overdue)
    if not overdue:
        return record, 0
    is_overdue = record.fetch_began_at in overdue
    record = record._replace(
        turns=tuple(at for at in record.turns if at not in overdue),
        fetch_began_at=NEVER if is_overdue else record.fetch_began_at,
        ended_at=max(record.ended_at, max(overdue) + seconds),
    )
    return record, len(overdue)


def moved(record: HostRecord, seconds: float) -> HostRecord:
    """The record with all times `seconds` later, for another clock."""
    return record._replace(
        ended_at=record.ended_at + seconds,
        turns=tuple(began_at + seconds for began_at in record.turns),
        fetch_began_at=record.fetch_began_at + seconds,
        rest_until=record.rest_until + seconds,
        incident_at=record.incident_at + seconds,
        blocked_until=record.blocked_until + seconds,
        queue=tuple((process, until + seconds) for process, until in record.queue),
    )


def as_ended(record: HostRecord) -> HostRecord:
    """The record as if each open turn had ended when it started, without the queue.

    The next request can't start before this record allows it.
    """
    return record._replace(
        ended_at=max(record.ended_at, record.fetch_began_at, *record.turns),
        turns=(),
        fetch_began_at=NEVER,
        queue=(),
    )


def without_incidents(record: HostRecord) -> HostRecord:
    """The record as if no request had ended badly; spacing and open turns stay.

    The queue is emptied, because it may be waiting for the end of a block.
    """
    return record._replace(
        rest_until=NEVER,
        incident_at=NEVER,
        blocked_until=NEVER,
        back_off=0.0,
        slowed_delay=0.0,
        queue=(),
    )


def delay_in_force(record: HostRecord, pace: Pace) -> float:
    """Seconds between requests to a host, including the effect of incidents."""
    return max(pace.delay, record.slowed_delay)


def host_state(record: HostRecord, now: float) -> HostState:
    """The host's state at `now`."""
    if now < record.blocked_until:
        return HostState.BLOCKED
    return HostState.PROBING if record.back_off > 0 else HostState.OPEN


def is_held_back(record: HostRecord, now: float) -> bool:
    """Whether a block, a Retry-After or `delay_factor` prevents requests at `now`."""
    return now < max(record.blocked_until, record.rest_until)


def forget_at(record: HostRecord) -> float:
    """The time from which a record no longer has any effect.

    This is `max_delay` after the last request, because the next request may require a
    longer delay, and at least `INCIDENT_MEMORY` after the last block. It is not before
    a Retry-After is over. Open turns are assumed to end when they become overdue.
    """
    pace = record.pace
    began_at = max((record.fetch_began_at, *record.turns))
    ended_at = max(record.ended_at, began_at + pace.max_turn_seconds)
    waiting_until = max((until for _, until in record.queue), default=NEVER)
    return max(
        ended_at + pace.max_delay,
        record.rest_until,
        record.blocked_until + INCIDENT_MEMORY,
        waiting_until,
    )


def after_attempt(
    record: HostRecord,
    now: float,
    *,
    process: int,
    pace: Pace,
    is_robots_txt: bool = False,
) -> tuple[HostRecord, float]:
    """The record after one of several processes has tried to start a request.

    Only the first process in the queue can start one. The others join the queue; a
    process that is still there in time keeps its place. A request for a robots.txt goes
    first, since pages may be waiting for it.

    Each process has a number from 0 to 2 ** 53; `record` must be up to date.

    Returns:
        The record, which is `record` itself if nothing has changed; and the seconds
        until the process should try again, 0 or less if the request has started.
    """
    waiting = [place for place in record.queue if place[1] > now]
    others = [place for place in waiting if place[0] != process]
    ahead = 0
    if not is_robots_txt:
        processes = [*(each for each, _ in waiting), process]
        ahead = processes.index(process)
    seconds = ready_at(record, now, pace=pace, is_robots_txt=is_robots_txt) - now
    if seconds <= 0 and not ahead:
        record = after_start(record, now, pace=pace, is_robots_txt=is_robots_txt)
        return record._replace(queue=tuple(others)), seconds
    delay = delay_in_force(record, pace)
    spacing = max(delay, (delay + record.turn_seconds) / pace.max_at_once)
    seconds = max(seconds, 0.0) + min(ahead * spacing, LONGEST_WAIT_FOR_OTHERS)
    until = now + seconds + LATENESS
    kept = waiting[ahead] if ahead < len(waiting) else (process, NEVER)
    if kept[0] == process and abs(until - kept[1]) <= LATENESS / 2:
        return record, seconds  # saves a write
    others.insert(ahead, (process, until))
    return record._replace(queue=tuple(others)), seconds


def encode(record: HostRecord, now: float) -> bytes:
    """Serialize `record`, written at `now` by its own clock."""
    pace, ended_at, turns, *fields, queue, turn_seconds = record
    numbers = [
        now,
        pace.delay,
        pace.max_at_once,
        pace.max_delay,
        pace.max_turn_seconds,
        pace.delay_factor,
        ended_at,
        *fields,
        turn_seconds,
        len(turns),
        *turns,
        *(number for place in queue for number in place),
    ]
    body = struct.pack(f">{len(numbers)}d", *numbers)
    return _FRAME.pack(_VERSION, zlib.crc32(body)) + body


def decode(data: bytes) -> tuple[float, HostRecord] | None:
    """When a record was written, and the record.

    `None` if `data` is damaged, or `encode` of this version has not written it.
    """
    body = data[_FRAME.size :]
    count, rest = divmod(len(body), _BYTES_OF_A_NUMBER)
    is_whole = not rest and count >= _NUMBERS_BEFORE_TURNS
    if not is_whole or data[: _FRAME.size] != _FRAME.pack(_VERSION, zlib.crc32(body)):
        return None
    try:
        return _record_in(struct.unpack(f">{count}d", body))
    except (ValueError, OverflowError):
        return None


def _after_duration(record: HostRecord, seconds: float) -> HostRecord:
    """The record after a turn of `seconds`, for which processes have waited."""
    usual = max(record.pace.delay, SHORTEST_WAIT_FOR_PLACE)
    most = LENGTHENING * record.turn_seconds or usual
    return record._replace(turn_seconds=min(seconds, most))


def _has_place(record: HostRecord, pace: Pace, *, is_robots_txt: bool) -> bool:
    if record.fetch_began_at > NEVER:
        return False
    max_at_once = 1 if record.back_off > 0 else pace.max_at_once
    return is_robots_txt or len(record.turns) < max_at_once


def _after_incident(
    record: HostRecord,
    now: float,
    *,
    began_at: float,
    retry_after: float | None,
    jitter: float,
) -> HostRecord:
    """The record after a request has ended with an incident.

    A request that started before the last incident is part of that incident: only its
    Retry-After is used.
    """
    seconds = retry_after or 0.0
    if began_at > record.incident_at:
        delay = SLOW_DOWN * delay_in_force(record, record.pace)
        back_off = max(SLOW_DOWN * record.back_off, FIRST_BACK_OFF)
        record = record._replace(
            incident_at=now,
            back_off=min(back_off, LONGEST_BACK_OFF),
            slowed_delay=min(max(delay, SMALLEST_SLOWED_DELAY), record.pace.max_delay),
        )
        if retry_after is None:
            seconds = record.back_off * jitter
    blocked_until = max(record.blocked_until, now + seconds)
    return record._replace(blocked_until=blocked_until)


def _after_good_answer(record: HostRecord, began_at: float) -> HostRecord:
    if began_at <= record.incident_at:  # the host's state before the incident
        return record
    slowed_delay = SPEED_UP * record.slowed_delay
    if slowed_delay <= record.pace.delay:
        slowed_delay = 0.0
    return record._replace(back_off=0.0, slowed_delay=slowed_delay)


def _record_in(numbers: tuple[float, ...]) -> tuple[float, HostRecord]:
    first, rest = numbers[:_NUMBERS_BEFORE_TURNS], numbers[_NUMBERS_BEFORE_TURNS:]
    written_at, delay, max_at_once, max_delay, max_turn_seconds, factor = first[:6]
    ended_at, *fields, turn_seconds, turns = first[6:]
    pace = Pace(
        delay=delay,
        max_at_once=int(max_at_once),
        max_delay=max_delay,
        max_turn_seconds=max_turn_seconds,
        delay_factor=factor,
    )
    places = rest[int(turns) :]
    queue = tuple(zip(map(int, places[::2]), places[1::2], strict=True))
    record = (pace, ended_at, rest[: int(turns)], *fields, queue, turn_seconds)
    return written_at, HostRecord._make(record)
