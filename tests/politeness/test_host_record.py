from __future__ import annotations

from typing import Any

import pytest

from robotsgate.politeness._host_record import (
    FIRST_BACK_OFF,
    INCIDENT_MEMORY,
    LONGEST_BACK_OFF,
    NEVER,
    SHORTEST_WAIT_FOR_PLACE,
    HostRecord,
    HostState,
    Pace,
    TurnEnd,
    after_end,
    after_start,
    after_time,
    delay_in_force,
    forget_at,
    host_state,
    pace_of,
    ready_at,
    stated_delay,
)
from robotsgate.robotstxt._model import RequestRate

from .builders import NOW, Host, pace

TEN_PER_MINUTE = RequestRate(requests=10, seconds=60.0)


@pytest.mark.parametrize(
    ("crawl_delay", "request_rate", "expected"),
    [
        pytest.param(None, None, None, id="nothing"),
        pytest.param(0.0, None, 0.0, id="crawl-delay of 0"),
        pytest.param(2.5, None, 2.5, id="crawl-delay"),
        pytest.param(None, TEN_PER_MINUTE, 6.0, id="request rate"),
        pytest.param(2.5, TEN_PER_MINUTE, 6.0, id="both, the rate is slower"),
        pytest.param(7.0, TEN_PER_MINUTE, 7.0, id="both, the crawl-delay is longer"),
    ],
)
def test_stated_delay(
    crawl_delay: float | None,
    request_rate: RequestRate | None,
    expected: float | None,
) -> None:
    assert stated_delay(crawl_delay, request_rate) == expected


@pytest.mark.parametrize(
    ("origins", "limits", "expected"),
    [
        pytest.param([], {}, (1.0, 4), id="no origin known: the default"),
        pytest.param([(None, None)], {}, (1.0, 4), id="nothing stated: the default"),
        pytest.param([(0.5, None)], {}, (1.0, 1), id="shorter than the default"),
        pytest.param([(10.0, None)], {}, (10.0, 1), id="crawl-delay: one at a time"),
        pytest.param([(None, TEN_PER_MINUTE)], {}, (6.0, 4), id="request rate"),
        pytest.param(
            [(2.0, None), (10.0, None), (None, None)], {}, (10.0, 1), id="most of all"
        ),
        pytest.param([(1e9, None)], {"max_delay": 3_600.0}, (3_600.0, 1), id="clamped"),
        pytest.param([], {"max_delay": 0.5}, (0.5, 4), id="default is clamped too"),
        pytest.param([], {"default_delay": 0.0}, (0.0, 4), id="no delay at all"),
    ],
)
def test_pace_of_host(
    origins: list[tuple[float | None, RequestRate | None]],
    limits: dict[str, float],
    expected: tuple[float, int],
) -> None:
    usual: dict[str, Any] = {
        "default_delay": 1.0,
        "max_delay": 3_600.0,
        "max_at_once": 4,
        "max_turn_seconds": 300.0,
    }

    answer = pace_of(origins, **(usual | limits))

    assert (answer.delay, answer.max_at_once) == expected


TWO_AT_ONCE = pace(2.0, max_at_once=2)


@pytest.mark.parametrize(
    ("fields", "pace_now", "for_page", "for_robots_txt"),
    [
        pytest.param({}, pace(), NEVER, NEVER, id="nothing known"),
        pytest.param({"ended_at": NOW}, pace(), 1.0, 1.0, id="request has ended"),
        pytest.param({"ended_at": NOW - 9}, pace(10.0), 1.0, 1.0, id="longer delay"),
        pytest.param({"ended_at": NOW}, pace(0.0), 0.0, 0.0, id="no delay"),
        pytest.param(
            {"ended_at": NOW, "slowed_delay": 4.0}, pace(), 4.0, 4.0, id="slowed down"
        ),
        pytest.param(
            {"ended_at": NOW, "slowed_delay": 4.0}, pace(9.0), 9.0, 9.0, id="own delay"
        ),
        pytest.param(
            {"turns": (NOW - 7,)}, pace(2.0), 2.0, -5.0, id="its place is taken"
        ),
        pytest.param(
            {"turns": (NOW - 7,)},
            pace(0.0),
            SHORTEST_WAIT_FOR_PLACE,
            -7.0,
            id="its place is taken, no delay",
        ),
        pytest.param(
            {"turns": (NOW - 7, NOW - 1)}, TWO_AT_ONCE, 2.0, 1.0, id="both are taken"
        ),
        pytest.param(
            {"turns": (NOW - 1,), "ended_at": NOW - 9},
            TWO_AT_ONCE,
            1.0,
            1.0,
            id="one of two is taken: from its start",
        ),
        pytest.param(
            {"turns": (NOW - 9,), "ended_at": NOW - 1},
            TWO_AT_ONCE,
            1.0,
            1.0,
            id="one of two has ended: from its end",
        ),
        pytest.param(
            {"turns": (NOW - 7,), "back_off": 60.0, "blocked_until": NOW - 5},
            TWO_AT_ONCE,
            2.0,
            -5.0,
            id="probing: one at a time",
        ),
        pytest.param(
            {"fetch_began_at": NOW - 7}, TWO_AT_ONCE, 2.0, 2.0, id="robots.txt comes"
        ),
        pytest.param(
            {"ended_at": NOW, "blocked_until": NOW + 60}, pace(), 60.0, 60.0, id="block"
        ),
        pytest.param(
            {"turns": (NOW,), "blocked_until": NOW + 60},
            pace(),
            60.0,
            60.0,
            id="blocked and taken",
        ),
        pytest.param(
            {"ended_at": NOW, "blocked_until": NOW + 2},
            pace(5.0),
            5.0,
            5.0,
            id="block is shorter than the delay",
        ),
    ],
)
def test_next_request_is_ready(
    fields: dict[str, Any], pace_now: Pace, for_page: float, for_robots_txt: float
) -> None:
    record = HostRecord(pace(), **fields)

    answers = [
        ready_at(record, NOW, pace=pace_now, is_robots_txt=is_robots_txt)
        for is_robots_txt in (False, True)
    ]

    assert answers == [NOW + for_page, NOW + for_robots_txt]


def test_start_takes_a_place_and_the_pace_of_now() -> None:
    record = after_start(HostRecord(pace(), turns=(NOW,)), NOW + 5, pace=TWO_AT_ONCE)

    assert record == HostRecord(TWO_AT_ONCE, turns=(NOW, NOW + 5))


def test_end_of_robots_txt_leaves_the_turns_under_way() -> None:
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
def test_end_frees_the_place_and_spaces_what_comes_if_there_was_a_request(
    end: TurnEnd, ended_at: float
) -> None:
    record = HostRecord(pace(), ended_at=NOW - 5, turns=(NOW - 1, NOW, NOW + 1))

    record = after_end(record, NOW + 5, began_at=NOW, end=end)

    assert (record.turns, record.ended_at) == ((NOW - 1, NOW + 1), ended_at)


def test_block_is_doubled_with_each_incident_in_a_row() -> None:
    host = Host(HostRecord(pace(max_delay=1.0)))

    waits = [host.ask(TurnEnd.INCIDENT) for _ in range(9)]

    assert waits[:4] == [0, FIRST_BACK_OFF, 2 * FIRST_BACK_OFF, 4 * FIRST_BACK_OFF]
    assert waits[-2:] == [LONGEST_BACK_OFF, LONGEST_BACK_OFF]


def test_block_is_short_again_after_a_good_answer() -> None:
    host = Host(HostRecord(pace(max_delay=1.0)))
    for end in (TurnEnd.INCIDENT, TurnEnd.INCIDENT, TurnEnd.GOOD, TurnEnd.INCIDENT):
        host.ask(end)

    assert host.ask() == FIRST_BACK_OFF


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        pytest.param({"retry_after": 7.0}, 7.0, id="shorter than the back-off"),
        pytest.param({"retry_after": 86_400.0}, 86_400.0, id="longer than it"),
        pytest.param({"retry_after": 0.0}, 2.0, id="at once: the doubled delay"),
        pytest.param({"retry_after": -9e9}, 2.0, id="a date that has passed"),
        pytest.param({"retry_after": 10.0, "jitter": 1.1}, 11.0, id="with jitter"),
        pytest.param({"jitter": 1.1}, 1.1 * FIRST_BACK_OFF, id="back-off with jitter"),
    ],
)
def test_block_lasts_as_long_as_the_host_asks(
    how: dict[str, float], expected: float
) -> None:
    host = Host(HostRecord(pace()))
    host.ask(TurnEnd.INCIDENT, **how)

    assert host.ask() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("pace_of_host", "ends", "expected"),
    [
        pytest.param(pace(3.0), "G", 3.0, id="no incident"),
        pytest.param(pace(3.0), "I", 6.0, id="incident doubles it"),
        pytest.param(pace(3.0), "II", 12.0, id="again"),
        pytest.param(pace(3.0), "I?", 6.0, id="an end without answer changes nothing"),
        pytest.param(pace(3.0), "IG", 4.8, id="good answer takes it down"),
        pytest.param(pace(3.0), "IGGG", 3.072, id="each does"),
        pytest.param(pace(3.0), "IGGGG", 3.0, id="never below the delay of the site"),
        pytest.param(pace(3.0, max_delay=5.0), "II", 5.0, id="at most max_delay"),
        pytest.param(pace(0.0), "I", 1.0, id="where there is no delay, one appears"),
        pytest.param(pace(0.0), "II", 2.0, id="and is doubled"),
    ],
)
def test_delay_after_incidents(pace_of_host: Pace, ends: str, expected: float) -> None:
    host = Host(HostRecord(pace_of_host))
    for end in ends:
        host.ask({"G": TurnEnd.GOOD, "I": TurnEnd.INCIDENT, "?": TurnEnd.UNJUDGED}[end])

    assert delay_in_force(host.record, pace_of_host) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("pace_of_host", "seconds", "expected"),
    [
        pytest.param(pace(delay_factor=3.0), 2.0, 6.0, id="three times as long"),
        pytest.param(pace(delay_factor=3.0), 0.1, 1.0, id="never below the delay"),
        pytest.param(
            pace(max_delay=5.0, delay_factor=3.0), 20.0, 5.0, id="at most max_delay"
        ),
    ],
)
def test_delay_after_a_request_grows_with_its_length(
    pace_of_host: Pace, seconds: float, expected: float
) -> None:
    host = Host(HostRecord(pace_of_host))
    began_at = host.start()
    ended_at = host.now = began_at + seconds
    host.end(began_at)

    assert host.start() - ended_at == pytest.approx(expected)


@pytest.mark.parametrize(
    ("slowed_delay", "next_delay"),
    [
        pytest.param(0.0, 4.0, id="longer, as a robots.txt has just asked"),
        pytest.param(4.0, 1.0, id="shorter, as an incident wears off"),
    ],
)
def test_rest_after_a_long_request_stays_where_the_delay_changes(
    slowed_delay: float, next_delay: float
) -> None:
    host = Host(HostRecord(pace(delay_factor=3.0), slowed_delay=slowed_delay))
    began_at = host.start()
    ended_at = host.now = began_at + 2.0
    host.end(began_at)

    next_pace = pace(next_delay, delay_factor=3.0)
    assert ready_at(host.record, ended_at, pace=next_pace) - ended_at == 6.0


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param([TurnEnd.GOOD], id="no incident"),
        pytest.param(
            [TurnEnd.INCIDENT, *[TurnEnd.GOOD] * 4], id="incident that is over"
        ),
    ],
)
def test_delay_that_a_site_takes_back_is_in_force_at_once(ends: list[TurnEnd]) -> None:
    host = Host(HostRecord(pace(60.0)))
    for end in ends:
        host.ask(end)

    assert ready_at(host.record, host.now, pace=pace(2.0)) == host.now + 2


@pytest.mark.parametrize(
    ("end", "how", "change"),
    [
        pytest.param(TurnEnd.INCIDENT, {}, {}, id="incident is not counted twice"),
        pytest.param(
            TurnEnd.INCIDENT,
            {"retry_after": 500.0},
            {"blocked_until": NOW + 501},
            id="its Retry-After counts",
        ),
        pytest.param(
            TurnEnd.INCIDENT, {"retry_after": 5.0}, {}, id="unless it is shorter"
        ),
        pytest.param(TurnEnd.GOOD, {}, {}, id="good answer does not open the host"),
    ],
)
def test_answer_of_a_request_that_began_before_the_incident(
    end: TurnEnd, how: dict[str, float], change: dict[str, Any]
) -> None:
    host = Host(HostRecord(pace(0.0, max_at_once=2)))
    first, second = host.start(), host.start()
    host.end(first, TurnEnd.INCIDENT)
    known = host.record

    host.now += 1
    host.end(second, end, **how)

    assert host.record == known._replace(turns=(), ended_at=host.now, **change)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, HostState.OPEN, id="nothing known"),
        pytest.param(
            {"back_off": 60.0, "blocked_until": NOW + 0.5},
            HostState.BLOCKED,
            id="block",
        ),
        pytest.param(
            {"back_off": 60.0, "blocked_until": NOW}, HostState.PROBING, id="block over"
        ),
        pytest.param({"blocked_until": NOW}, HostState.OPEN, id="good answer since"),
        pytest.param(
            {"blocked_until": NOW + 0.5}, HostState.BLOCKED, id="late Retry-After"
        ),
    ],
)
def test_state_of_host(fields: dict[str, float], expected: HostState) -> None:
    assert host_state(HostRecord(pace(), **fields), NOW) is expected


@pytest.mark.parametrize(
    ("fields", "change", "count"),
    [
        pytest.param({}, {}, 0, id="nothing under way"),
        pytest.param({"turns": (NOW - 299.5,)}, {}, 0, id="a moment is left"),
        pytest.param(
            {"turns": (NOW - 300,)}, {"turns": (), "ended_at": NOW}, 1, id="just over"
        ),
        pytest.param(
            {"turns": (NOW - 350, NOW - 340, NOW)},
            {"turns": (NOW,), "ended_at": NOW - 40},
            2,
            id="two of three",
        ),
        pytest.param(
            {"turns": (NOW - 350,), "ended_at": NOW - 1},
            {"turns": ()},
            1,
            id="another request ended later",
        ),
        pytest.param(
            {"fetch_began_at": NOW - 301, "turns": (NOW,)},
            {"fetch_began_at": NEVER, "ended_at": NOW - 1},
            1,
            id="fetch of robots.txt",
        ),
        pytest.param(
            {"blocked_until": NOW - 3_599, "slowed_delay": 4.0},
            {},
            0,
            id="incident is remembered",
        ),
        pytest.param(
            {"blocked_until": NOW - 3_600, "slowed_delay": 4.0},
            {"blocked_until": NEVER, "slowed_delay": 0.0},
            0,
            id="incident is forgotten",
        ),
        pytest.param(
            {"turns": (NOW - 3_900,)}, {"turns": ()}, 1, id="turn and host forgotten"
        ),
    ],
)
def test_time_ends_overdue_turns_and_old_incidents(
    fields: dict[str, Any], change: dict[str, Any], count: int
) -> None:
    record = HostRecord(pace(), **fields)

    assert after_time(record, NOW) == (record._replace(**change), count)


@pytest.mark.parametrize("is_robots_txt", [False, True], ids=["page", "robots.txt"])
def test_request_of_an_overdue_turn_spaces_what_comes_when_it_ends(
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


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, NEVER, id="nothing known: at once"),
        pytest.param({"ended_at": NOW}, 3_600.0, id="longest delay after its end"),
        pytest.param({"turns": (NOW,)}, 3_900.0, id="turn under way is overdue first"),
        pytest.param({"fetch_began_at": NOW}, 3_900.0, id="so is a fetch"),
        pytest.param(
            {"ended_at": NOW, "blocked_until": NOW + 60},
            60 + INCIDENT_MEMORY,
            id="incident",
        ),
    ],
)
def test_host_is_forgotten(fields: dict[str, Any], expected: float) -> None:
    assert forget_at(HostRecord(pace(), **fields)) - NOW == expected
