"""What of an entry counts by our clock (`_merge.usable`)."""

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
    "an answer, whose outage is further ahead":
        (entry(COPY, outage(NOW, last_attempt_at=NOW + SKEW + 1)), entry(COPY)),
    "an outage alone far ahead": (entry(None, outage(NOW + SKEW + 1)), None),
    "an answer far ahead": (entry(AHEAD), entry(AHEAD)),
    "its outage": (entry(AHEAD, outage(NOW)), entry(AHEAD, outage(NOW))),
})  # fmt: skip
def test_outage_far_ahead_is_dropped_alone(known: object, expected: object) -> None:
    assert usable(known, now=NOW, policy=Policy()) == expected  # type: ignore[arg-type]


def test_entry_counts_as_nothing_when_nothing_could_use_it() -> None:
    known = entry(COPY)
    end = NOW + 31 * DAY

    assert usable(known, now=end - 1, policy=Policy()) is known
    assert usable(known, now=end, policy=Policy()) is None


def test_answer_is_kept_no_longer_for_an_outage_far_ahead() -> None:
    known = entry(COPY, outage(NOW + 40 * DAY))

    assert usable(known, now=NOW + 31 * DAY, policy=Policy()) is None
