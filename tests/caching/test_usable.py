"""The part of an entry that is valid by our clock (`_entry.usable`)."""

from __future__ import annotations

from robotsgate.caching._entry import usable
from robotsgate.caching._policy import Policy
from tests.tables import cases

from .builders import DAY, MINUTE, NOW, answer, entry, outage

SKEW = 5 * MINUTE
COPY = answer()
AHEAD = answer(answered_at=NOW + SKEW + 1, fresh_until=NOW + DAY)


@cases("known expected", {
    "an answer": (entry(COPY), entry(COPY)),
    "an outage five minutes ahead":
        (entry(COPY, outage(NOW + SKEW)), entry(COPY, outage(NOW + SKEW))),
    "an answer with an outage further ahead":
        (entry(COPY, outage(NOW, last_attempt_at=NOW + SKEW + 1)), entry(COPY)),
    "an outage alone far ahead": (entry(None, outage(NOW + SKEW + 1)), None),
    "an answer far ahead": (entry(AHEAD), entry(AHEAD)),
    "an answer far ahead with an outage":
        (entry(AHEAD, outage(NOW)), entry(AHEAD, outage(NOW))),
})  # fmt: skip
def test_only_an_outage_dated_far_ahead_is_dropped(
    known: object, expected: object
) -> None:
    assert usable(known, now=NOW, policy=Policy()) == expected  # type: ignore[arg-type]


def test_entry_is_dropped_when_nothing_can_use_it() -> None:
    known = entry(COPY)
    end = NOW + 31 * DAY

    assert usable(known, now=end - 1, policy=Policy()) is known
    assert usable(known, now=end, policy=Policy()) is None


def test_outage_dated_far_ahead_does_not_prolong_the_answer() -> None:
    known = entry(COPY, outage(NOW + 40 * DAY))

    assert usable(known, now=NOW + 31 * DAY, policy=Policy()) is None
