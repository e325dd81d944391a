"""Which capture of an origin is selected."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from robotsgate import ArchivedResponse, Policy
from robotsgate.archive import last_capture
from tests.tables import cases

_DAY = 86_400.0
_WINDOW = Policy().stale_window


def captured(status: int | None, date: float | None) -> ArchivedResponse:
    return ArchivedResponse(status, fetched_at=date)


@cases("captures as_of expected", {
    "none": ([], None, None),
    "the last": ([(200, 1), (404, 2)], None, (404, 2)),
    "the last, given first": ([(404, 2), (200, 1)], None, (404, 2)),
    "on the date": ([(200, 1), (404, 2)], 2, (404, 2)),
    "before the date": ([(200, 1), (404, 2)], 1.9, (200, 1)),
    "all are later": ([(200, 1), (404, 2)], 0.9, None),
    "the same date": ([(404, 1), (403, 1), (200, 0)], None, (403, 1)),
    "none is dated": ([(200, None), (404, None)], None, (404, None)),
    "the undated one counts as the oldest": ([(200, 0), (404, None)], None, (200, 0)),
    "an undated one matches no date": ([(404, None)], 9, None),
})  # fmt: skip
def test_last_capture_is_selected(
    captures: list[tuple[int, float | None]],
    as_of: float | None,
    expected: tuple[int, float | None] | None,
) -> None:
    given = [captured(*one) for one in captures]

    chosen = last_capture(given, as_of=as_of)

    assert chosen == (None if expected is None else captured(*expected))


_429_IS_AN_ANSWER = replace(Policy.rfc9309(), outage_grace=0)


@cases("statuses age policy expected", {
    "503": ([200, 503], _DAY, Policy(), 200),
    "429": ([200, 429], _DAY, Policy(), 200),
    "several failures": ([200, 500, 429, 599], _DAY, Policy(), 200),
    "at the end of the window": ([200, 503], _WINDOW, Policy(), 200),
    "after the window": ([200, 503], _WINDOW + 1, Policy(), 503),
    "no window": ([200, 503], 0, Policy(stale_window=0), 503),
    "a grace": ([200, 503], _DAY, Policy.google_today(), 503),
    "429 as an answer": ([200, 429], _DAY, _429_IS_AN_ANSWER, 429),
    "503 if 429 is an answer": ([200, 503], _DAY, _429_IS_AN_ANSWER, 200),
    "no file before": ([200, 404, 503], _DAY, Policy(), 503),
    "a redirect before": ([200, 301, 503], _DAY, Policy(), 503),
    "a partial file": ([200, 206, 503], _DAY, Policy(), 200),
    "a bot wall": ([200, 202], _DAY, Policy(), 200),
    "202 as an answer": ([200, 202], _DAY, Policy(detect_walls=False), 202),
    "nothing before": ([503], _DAY, Policy(), 503),
    "an unreadable copy": ([200, None, 503], _DAY, Policy(), None),
    "an unreadable copy after the window": ([None, 503], _WINDOW + 1, Policy(), 503),
    "an unreadable capture": ([200, 503, None], _DAY, Policy(), None),
})  # fmt: skip
def test_failure_is_skipped_if_there_is_a_good_copy(
    statuses: list[int | None], age: float, policy: Policy, expected: int | None
) -> None:
    """The last capture is `age` seconds later than the one before it."""
    *before, last = statuses
    captures = [captured(status, _DAY + n) for n, status in enumerate(before)]
    captures.append(captured(last, captures[-1].fetched_at + age if captures else age))

    chosen = last_capture(captures, policy=policy)

    assert chosen is not None
    assert chosen.status == expected


def test_order_of_the_captures_does_not_matter() -> None:
    captures = [captured(200, 1), captured(503, 2), captured(404, 3)]

    for given in permutations(captures):
        assert last_capture(given, as_of=2.5) is captures[0]
