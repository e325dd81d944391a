from __future__ import annotations

import heapq
from collections import Counter
from typing import Any

import pytest

from robotsgate.politeness._host_record import (
    FIRST_BACK_OFF,
    INCIDENT_MEMORY,
    LATENESS,
    LONGEST_BACK_OFF,
    NEVER,
    SHORTEST_WAIT_FOR_PLACE,
    HostRecord,
    HostState,
    Pace,
    TurnEnd,
    after_attempt,
    after_end,
    after_start,
    after_time,
    as_ended,
    delay_in_force,
    forget_at,
    host_state,
    moved,
    pace_of,
    ready_at,
    stated_delay,
    without_incidents,
)
from robotsgate.robotstxt._model import RequestRate
from tests.tables import cases

from .builders import NOW, Host, pace

TEN_PER_MINUTE = RequestRate(requests=10, seconds=60.0)


@cases("crawl_delay request_rate expected", {
    "nothing": (None, None, None),
    "crawl-delay of 0": (0.0, None, 0.0),
    "crawl-delay": (2.5, None, 2.5),
    "request rate": (None, TEN_PER_MINUTE, 6.0),
    "both, the rate is slower": (2.5, TEN_PER_MINUTE, 6.0),
    "both, the crawl-delay is longer": (7.0, TEN_PER_MINUTE, 7.0),
})  # fmt: skip
def test_stated_delay(
    crawl_delay: float | None,
    request_rate: RequestRate | None,
    expected: float | None,
) -> None:
    assert stated_delay(crawl_delay, request_rate) == expected


@cases("origins limits expected", {
    "no origins: the default": ([], {}, (1.0, 4)),
    "nothing stated: the default": ([(None, None)], {}, (1.0, 4)),
    "shorter than the default": ([(0.5, None)], {}, (1.0, 1)),
    "crawl-delay: one at a time": ([(10.0, None)], {}, (10.0, 1)),
    "request rate": ([(None, TEN_PER_MINUTE)], {}, (6.0, 4)),
    "the longest of all": ([(2.0, None), (10.0, None), (None, None)], {}, (10.0, 1)),
    "clamped": ([(1e9, None)], {"max_delay": 3_600.0}, (3_600.0, 1)),
    "default is clamped too": ([], {"max_delay": 0.5}, (0.5, 4)),
    "no delay": ([], {"delay": 0.0}, (0.0, 4)),
})  # fmt: skip
def test_pace_of(
    origins: list[tuple[float | None, RequestRate | None]],
    limits: dict[str, float],
    expected: tuple[float, int],
) -> None:
    result = pace_of(origins, pace(**({"max_at_once": 4} | limits)))

    assert (result.delay, result.max_at_once) == expected


TWO_AT_ONCE = pace(2.0, max_at_once=2)


@cases("fields pace_now for_page for_robots_txt", {
    "nothing known": ({}, pace(), NEVER, NEVER),
    "after a request": ({"ended_at": NOW}, pace(), 1.0, 1.0),
    "delay is longer now": ({"ended_at": NOW - 9}, pace(10.0), 1.0, 1.0),
    "no delay": ({"ended_at": NOW}, pace(0.0), 0.0, 0.0),
    "slowed down": ({"ended_at": NOW, "slowed_delay": 4.0}, pace(), 4.0, 4.0),
    "own delay is longer": (
        {"ended_at": NOW, "slowed_delay": 4.0}, pace(9.0), 9.0, 9.0,
    ),
    "turn is open": ({"turns": (NOW - 7,)}, pace(2.0), 2.0, -5.0),
    "turn is open, no delay": (
        {"turns": (NOW - 7,)}, pace(0.0), SHORTEST_WAIT_FOR_PLACE, -7.0,
    ),
    "both turns are open": ({"turns": (NOW - 7, NOW - 1)}, TWO_AT_ONCE, 2.0, 1.0),
    "one of two turns is open: from its start": (
        {"turns": (NOW - 1,), "ended_at": NOW - 9}, TWO_AT_ONCE, 1.0, 1.0,
    ),
    "one of two turns has ended: from its end": (
        {"turns": (NOW - 9,), "ended_at": NOW - 1}, TWO_AT_ONCE, 1.0, 1.0,
    ),
    "probing: one at a time": (
        {"turns": (NOW - 7,), "back_off": 60.0, "blocked_until": NOW - 5}, TWO_AT_ONCE,
        2.0, -5.0,
    ),
    "robots.txt is being fetched": ({"fetch_began_at": NOW - 7}, TWO_AT_ONCE, 2.0, 2.0),
    "blocked": ({"ended_at": NOW, "blocked_until": NOW + 60}, pace(), 60.0, 60.0),
    "blocked, turn is open": (
        {"turns": (NOW,), "blocked_until": NOW + 60}, pace(), 60.0, 60.0,
    ),
    "block is shorter than the delay": (
        {"ended_at": NOW, "blocked_until": NOW + 2}, pace(5.0), 5.0, 5.0,
    ),
})  # fmt: skip
def test_ready_at(
    fields: dict[str, Any], pace_now: Pace, for_page: float, for_robots_txt: float
) -> None:
    record = HostRecord(pace(), **fields)

    answers = [
        ready_at(record, NOW, pace=pace_now, is_robots_txt=is_robots_txt)
        for is_robots_txt in (False, True)
    ]

    assert answers == [NOW + for_page, NOW + for_robots_txt]


def test_start_records_the_turn_and_the_current_pace() -> None:
    record = after_start(HostRecord(pace(), turns=(NOW,)), NOW + 5, pace=TWO_AT_ONCE)

    assert record == HostRecord(TWO_AT_ONCE, turns=(NOW, NOW + 5))


def test_end_of_a_robots_txt_fetch_leaves_turns_open() -> None:
    record = HostRecord(pace(), turns=(NOW,))

    record = after_start(record, NOW, pace=pace(), is_robots_txt=True)
    record = after_end(
        record, NOW + 5, began_at=NOW, end=TurnEnd.GOOD, is_robots_txt=True
    )

    assert record == HostRecord(pace(), turns=(NOW,), ended_at=NOW + 5)


@pytest.mark.parametrize(
    ("end", "ended_at"),
    [
        (TurnEnd.GOOD, NOW + 5),
        (TurnEnd.INCIDENT, NOW + 5),
        (TurnEnd.UNJUDGED, NOW + 5),
        (TurnEnd.UNUSED, NOW - 5),
    ],
)
def test_end_closes_the_turn_and_starts_the_delay_unless_it_was_unused(
    end: TurnEnd, ended_at: float
) -> None:
    record = HostRecord(pace(), ended_at=NOW - 5, turns=(NOW - 1, NOW, NOW + 1))

    record = after_end(record, NOW + 5, began_at=NOW, end=end)

    assert (record.turns, record.ended_at) == ((NOW - 1, NOW + 1), ended_at)


def test_block_doubles_with_each_consecutive_incident() -> None:
    host = Host(HostRecord(pace(max_delay=1.0)))

    waits = [host.request(TurnEnd.INCIDENT) for _ in range(9)]

    assert waits[:4] == [0, FIRST_BACK_OFF, 2 * FIRST_BACK_OFF, 4 * FIRST_BACK_OFF]
    assert waits[-2:] == [LONGEST_BACK_OFF, LONGEST_BACK_OFF]


def test_block_is_short_again_after_a_good_response() -> None:
    host = Host(HostRecord(pace(max_delay=1.0)))
    for end in (TurnEnd.INCIDENT, TurnEnd.INCIDENT, TurnEnd.GOOD, TurnEnd.INCIDENT):
        host.request(end)

    assert host.request() == FIRST_BACK_OFF


@cases("details expected", {
    "Retry-After is shorter than the back-off": ({"retry_after": 7.0}, 7.0),
    "Retry-After is longer than the back-off": ({"retry_after": 86_400.0}, 86_400.0),
    "Retry-After is 0: the doubled delay": ({"retry_after": 0.0}, 2.0),
    "Retry-After is a date in the past": ({"retry_after": -9e9}, 2.0),
    "Retry-After, whose end is exact": ({"retry_after": 10.0, "jitter": 1.1}, 10.0),
    "back-off with jitter": ({"jitter": 1.1}, 1.1 * FIRST_BACK_OFF),
})  # fmt: skip
def test_wait_after_an_incident(details: dict[str, float], expected: float) -> None:
    host = Host(HostRecord(pace()))
    host.request(TurnEnd.INCIDENT, **details)

    assert host.request() == pytest.approx(expected)


@cases("details expected", {
    "longer than the delay": ({"retry_after": 7.0}, 7.0),
    "without jitter": ({"retry_after": 10.0, "jitter": 1.1}, 10.0),
    "shorter than the delay": ({"retry_after": 0.5}, 1.0),
    "date in the past": ({"retry_after": -9e9}, 1.0),
})  # fmt: skip
def test_retry_after_of_another_response_delays_only_the_next_request(
    details: dict[str, float], expected: float
) -> None:
    """It neither blocks the host nor slows it down."""
    host = Host(HostRecord(pace()))
    host.request(TurnEnd.GOOD, **details)

    assert host_state(host.record, host.now) is HostState.OPEN
    assert [host.request(), host.request()] == pytest.approx([expected, 1.0])


@cases("host_pace ends expected", {
    "no incident": (pace(3.0), "G", 3.0),
    "incident doubles it": (pace(3.0), "I", 6.0),
    "failure doubles it, too": (pace(3.0), "F", 6.0),
    "second incident doubles it again": (pace(3.0), "II", 12.0),
    "unjudged end changes nothing": (pace(3.0), "I?", 6.0),
    "good response shortens it": (pace(3.0), "IG", 4.8),
    "more good responses shorten it further": (pace(3.0), "IGGG", 3.072),
    "never below the site's delay": (pace(3.0), "IGGGG", 3.0),
    "at most max_delay": (pace(3.0, max_delay=5.0), "II", 5.0),
    "without a delay, incident adds one": (pace(0.0), "I", 1.0),
    "without a delay, second incident doubles it": (pace(0.0), "II", 2.0),
})  # fmt: skip
def test_delay_after_incidents(host_pace: Pace, ends: str, expected: float) -> None:
    host = Host(HostRecord(host_pace))
    names = {
        "G": TurnEnd.GOOD,
        "I": TurnEnd.INCIDENT,
        "F": TurnEnd.FAILURE,
        "?": TurnEnd.UNJUDGED,
    }
    for end in ends:
        host.request(names[end])

    assert delay_in_force(host.record, host_pace) == pytest.approx(expected)


@cases("host_pace seconds expected", {
    "three times the duration": (pace(delay_factor=3.0), 2.0, 6.0),
    "never below the delay": (pace(delay_factor=3.0), 0.1, 1.0),
    "at most max_delay": (pace(max_delay=5.0, delay_factor=3.0), 20.0, 5.0),
})  # fmt: skip
def test_delay_after_a_request_grows_with_its_duration(
    host_pace: Pace, seconds: float, expected: float
) -> None:
    host = Host(HostRecord(host_pace))
    began_at = host.start()
    ended_at = host.now = began_at + seconds
    host.end(began_at)

    assert host.start() - ended_at == pytest.approx(expected)


@cases("slowed_delay next_delay", {
    "longer, because robots.txt has changed": (0.0, 4.0),
    "shorter, because an incident wears off": (4.0, 1.0),
})  # fmt: skip
def test_rest_after_a_slow_request_is_kept_when_the_delay_changes(
    slowed_delay: float, next_delay: float
) -> None:
    host = Host(HostRecord(pace(delay_factor=3.0), slowed_delay=slowed_delay))
    began_at = host.start()
    ended_at = host.now = began_at + 2.0
    host.end(began_at)

    next_pace = pace(next_delay, delay_factor=3.0)
    assert ready_at(host.record, ended_at, pace=next_pace) - ended_at == 6.0


@cases("ends", {
    "no incident": ([TurnEnd.GOOD],),
    "past incident": ([TurnEnd.INCIDENT, *[TurnEnd.GOOD] * 4],),
})  # fmt: skip
def test_shortened_delay_applies_immediately(ends: list[TurnEnd]) -> None:
    host = Host(HostRecord(pace(60.0)))
    for end in ends:
        host.request(end)

    assert ready_at(host.record, host.now, pace=pace(2.0)) == host.now + 2


@cases("end details change", {
    "incident is not counted twice": (TurnEnd.INCIDENT, {}, {}),
    "its Retry-After applies": (
        TurnEnd.INCIDENT, {"retry_after": 500.0}, {"blocked_until": NOW + 501},
    ),
    "shorter Retry-After is ignored": (TurnEnd.INCIDENT, {"retry_after": 5.0}, {}),
    "good response does not open the host": (TurnEnd.GOOD, {}, {}),
})  # fmt: skip
def test_response_to_a_request_started_before_the_incident(
    end: TurnEnd, details: dict[str, float], change: dict[str, Any]
) -> None:
    host = Host(HostRecord(pace(0.0, max_at_once=2)))
    first, second = host.start(), host.start()
    host.end(first, TurnEnd.INCIDENT)
    before = host.record

    host.now += 1
    host.end(second, end, **details)

    assert host.record == before._replace(turns=(), ended_at=host.now, **change)


def test_host_without_incidents_keeps_its_spacing_and_its_open_turns() -> None:
    kept = HostRecord(
        pace(), ended_at=NOW - 1, turns=(NOW,), fetch_began_at=NOW, turn_seconds=3.0
    )
    record = kept._replace(
        rest_until=NOW + 60,
        incident_at=NOW - 2,
        blocked_until=NOW + 60,
        back_off=60.0,
        slowed_delay=4.0,
        queue=((1, NOW + 61),),
    )

    assert without_incidents(record) == kept


@cases("fields expected", {
    "nothing known": ({}, HostState.OPEN),
    "block": ({"back_off": 60.0, "blocked_until": NOW + 0.5}, HostState.BLOCKED),
    "block is over": ({"back_off": 60.0, "blocked_until": NOW}, HostState.PROBING),
    "good response since": ({"blocked_until": NOW}, HostState.OPEN),
    "late Retry-After": ({"blocked_until": NOW + 0.5}, HostState.BLOCKED),
})  # fmt: skip
def test_state_of_host(fields: dict[str, float], expected: HostState) -> None:
    assert host_state(HostRecord(pace(), **fields), NOW) is expected


@cases("fields change count", {
    "no open turns": ({}, {}, 0),
    "almost overdue": ({"turns": (NOW - 299.5,)}, {}, 0),
    "just overdue": ({"turns": (NOW - 300,)}, {"turns": (), "ended_at": NOW}, 1),
    "two of three are overdue": (
        {"turns": (NOW - 350, NOW - 340, NOW)}, {"turns": (NOW,), "ended_at": NOW - 40},
        2,
    ),
    "another request ended later": (
        {"turns": (NOW - 350,), "ended_at": NOW - 1}, {"turns": ()}, 1,
    ),
    "robots.txt fetch is overdue": (
        {"fetch_began_at": NOW - 301, "turns": (NOW,)},
        {"fetch_began_at": NEVER, "ended_at": NOW - 1}, 1,
    ),
    "incident still matters": (
        {"blocked_until": NOW - 3_599, "slowed_delay": 4.0}, {}, 0,
    ),
    "incident is forgotten": (
        {"blocked_until": NOW - 3_600, "slowed_delay": 4.0},
        {"blocked_until": NEVER, "slowed_delay": 0.0}, 0,
    ),
    "turn is overdue, host is forgotten": ({"turns": (NOW - 3_900,)}, {"turns": ()}, 1),
})  # fmt: skip
def test_passing_time_ends_overdue_turns_and_old_incidents(
    fields: dict[str, Any], change: dict[str, Any], count: int
) -> None:
    record = HostRecord(pace(), **fields)

    assert after_time(record, NOW) == (record._replace(**change), count)


@pytest.mark.parametrize("is_robots_txt", [False, True], ids=["page", "robots.txt"])
def test_delay_runs_from_the_actual_end_of_an_overdue_turn(
    *, is_robots_txt: bool
) -> None:
    record = HostRecord(pace(), turns=(NOW + 301,), fetch_began_at=NOW + 302)

    record_after = after_end(
        record,
        NOW + 400,
        began_at=NOW,
        end=TurnEnd.GOOD,
        is_robots_txt=is_robots_txt,
    )

    assert record_after == record._replace(ended_at=NOW + 400)


@cases("fields expected", {
    "nothing known: immediately": ({}, NEVER),
    "max_delay after the last end": ({"ended_at": NOW}, 3_600.0),
    "open turn has to become overdue first": ({"turns": (NOW,)}, 3_900.0),
    "open fetch has to become overdue first": ({"fetch_began_at": NOW}, 3_900.0),
    "incident": ({"ended_at": NOW, "blocked_until": NOW + 60}, 60 + INCIDENT_MEMORY),
    "Retry-After": ({"ended_at": NOW, "rest_until": NOW + 7_200}, 7_200),
    "processes are still waiting": (
        {"ended_at": NOW, "queue": ((1, NOW + 9_000), (2, NOW + 8_000))}, 9_000,
    ),
})  # fmt: skip
def test_forget_at(fields: dict[str, Any], expected: float) -> None:
    assert forget_at(HostRecord(pace(), **fields)) - NOW == expected


TWO = pace(2.0)
ME, HER, HIM = 1, 2, 3


@cases("fields seconds queue", {
    "nothing known: starts": ({}, None, []),
    "first in the queue: starts and leaves it": (
        {"ended_at": NOW - 2, "queue": ((ME, NOW + 0.1), (HER, NOW + 2))}, None, [HER],
    ),
    "delay pending: joins": ({"ended_at": NOW - 1}, 1.0, [ME]),
    "turn is open: joins": ({"turns": (NOW,)}, 2.0, [ME]),
    "ready, but another is first: a delay later": (
        {"queue": ((HER, NOW + 0.1),)}, 2.0, [HER, ME],
    ),
    "two are ahead: two delays later": (
        {"ended_at": NOW - 1, "queue": ((HER, NOW + 2), (HIM, NOW + 4))}, 5.0,
        [HER, HIM, ME],
    ),
    "tries again: keeps its place": (
        {"queue": ((HER, NOW + 2), (ME, NOW + 4), (HIM, NOW + 6))}, 2.0, [HER, ME, HIM],
    ),
    "those ahead are late: starts": ({"queue": ((HER, NOW), (HIM, NOW - 1))}, None, []),
    "is late: joins at the end": (
        {"ended_at": NOW, "queue": ((ME, NOW), (HER, NOW + 3))}, 4.0, [HER, ME],
    ),
    "slowed down: a longer delay later": (
        {"queue": ((HER, NOW + 3),), "slowed_delay": 5.0}, 5.0, [HER, ME],
    ),
    "turns take time: later by that": (
        {"queue": ((HER, NOW + 3),), "turn_seconds": 4.0}, 6.0, [HER, ME],
    ),
    "many are ahead, perhaps dead: a minute later": (
        {"queue": tuple((number, NOW + 9) for number in range(10, 50))}, 60.0,
        [*range(10, 50), ME],
    ),
})  # fmt: skip
def test_attempt_of_one_of_several_processes(
    fields: dict[str, Any], seconds: float | None, queue: list[int]
) -> None:
    before = HostRecord(TWO, **fields)

    record, wait = after_attempt(before, NOW, process=ME, pace=TWO)

    assert [process for process, _ in record.queue] == queue
    if seconds is None:
        assert wait <= 0
        assert record._replace(queue=()) == after_start(
            before._replace(queue=()), NOW, pace=TWO
        )
    else:
        assert wait == seconds
        assert dict(record.queue)[ME] == NOW + seconds + LATENESS
        assert record._replace(queue=before.queue) == before


@cases("queue is_written", {
    "place is kept long enough": (((ME, NOW + 2.6),), False),
    "place would be lost soon": (((ME, NOW + 2.4),), True),
    "place is kept for too long": (((ME, NOW + 3.6),), True),
    "has no place": (((HER, NOW + 3.0),), True),
})  # fmt: skip
def test_wait_that_changes_nothing_returns_the_same_record(
    queue: tuple[tuple[int, float], ...], *, is_written: bool
) -> None:
    record = HostRecord(TWO, turns=(NOW,), queue=queue)

    record_after, _ = after_attempt(record, NOW, process=ME, pace=TWO)

    assert (record_after is not record) is is_written


def test_robots_txt_fetch_goes_ahead_of_pages_that_waited_longer() -> None:
    record = HostRecord(TWO, ended_at=NOW, queue=((HER, NOW + 3), (ME, NOW + 5)))

    record, wait = after_attempt(record, NOW, process=ME, pace=TWO, is_robots_txt=True)

    assert (wait, [process for process, _ in record.queue]) == (2.0, [ME, HER])


@cases("expected_before took expected", {
    "first turn": (0.0, 0.5, 0.5),
    "first turn is long: at most a delay": (0.0, 120.0, 2.0),
    "shorter": (4.0, 1.0, 1.0),
    "longer: grows slowly": (4.0, 120.0, 4.2),
})  # fmt: skip
def test_expected_duration_of_a_turn_stays_near_the_minimum(
    expected_before: float, took: float, expected: float
) -> None:
    record = HostRecord(
        TWO, turns=(NOW,), queue=((HER, NOW + 3),), turn_seconds=expected_before
    )

    record = after_end(record, NOW + took, began_at=NOW, end=TurnEnd.GOOD)

    assert record.turn_seconds == pytest.approx(expected)


@pytest.mark.parametrize(
    ("processes", "took", "most"),
    [(1, 0.25, 2.0), (16, 0.25, 4.5), (64, 0.25, 5.2), (16, 4.0, 7.0), (64, 4.0, 11.0)],
)
def test_processes_share_a_host_evenly_with_few_updates(
    processes: int, took: float, most: float
) -> None:
    """Without a queue, 7 of 64 processes had all turns."""
    one, record = pace(1.0), HostRecord(pace(1.0))
    turns: Counter[int] = Counter()
    updates, now, count = 0, NOW, 10 * processes
    # When each process tries next, and when its turn began (0 if it has none).
    steps = [(NOW, process, 0.0) for process in range(processes)]

    while turns.total() < count:
        now, process, began_at = heapq.heappop(steps)
        updates += 1
        if began_at:
            record = after_end(record, now, began_at=began_at, end=TurnEnd.GOOD)
            began_at, seconds = 0.0, 1.0
        else:
            record, seconds = after_attempt(record, now, process=process, pace=one)
            if seconds <= 0:
                turns[process] += 1
                began_at, seconds = now, took
        heapq.heappush(steps, (now + seconds + 0.001, process, began_at))

    assert updates / count <= most
    assert set(turns) == set(range(processes))
    assert max(turns.values()) - min(turns.values()) <= 1
    assert now - NOW < 1.05 * count * (1.0 + took)


@pytest.mark.parametrize(
    "fields",
    [
        {"ended_at": NOW, "turns": (NOW - 5,)},
        {"ended_at": NOW - 9, "turns": (NOW - 5, NOW), "queue": ((HER, NOW + 3),)},
        {"turns": (NOW - 5,), "fetch_began_at": NOW},
    ],
    ids=["end is last", "start is last", "robots.txt fetch is last"],
)
def test_next_request_starts_a_delay_after_the_last_one_however_it_ends(
    fields: dict[str, Any],
) -> None:
    record = as_ended(HostRecord(TWO, **fields))

    assert record == HostRecord(TWO, ended_at=NOW)


def test_moved_record_allows_the_same_on_another_clock() -> None:
    record = HostRecord(
        TWO,
        ended_at=NOW - 1,
        turns=(NOW - 3,),
        fetch_began_at=NOW - 2,
        rest_until=NOW + 1,
        incident_at=NOW - 4,
        blocked_until=NOW + 2,
        back_off=60.0,
        slowed_delay=4.0,
        queue=((HER, NOW + 3),),
        turn_seconds=5.0,
    )

    assert moved(record, 100.0) == record._replace(
        ended_at=NOW + 99,
        turns=(NOW + 97,),
        fetch_began_at=NOW + 98,
        rest_until=NOW + 101,
        incident_at=NOW + 96,
        blocked_until=NOW + 102,
        queue=((HER, NOW + 103),),
    )
    assert moved(HostRecord(TWO), 100.0) == HostRecord(TWO)
