"""Summaries of verdicts, as printed by `robotsgate check`."""

from __future__ import annotations

from dataclasses import replace

from robotsgate import AccessResult, Reason, Verdict
from robotsgate.cli._explain import summary
from tests.tables import cases

_NOW = 1_000_000_000.0
_VERDICT = Verdict(
    allowed=False,
    url="https://example.com/private",
    agent="ExampleBot",
    reason=Reason.UNREACHABLE,
    rule=None,
    group=None,
    access=AccessResult.UNREACHABLE,
    is_stale=False,
    origin="https://example.com",
    status=None,
    redirects=(),
    error="timed out",
    fetched_at=None,
    fresh_until=_NOW + 300,
)


@cases("seconds words", {
    "in the past": (-1, "0 s"),
    "seconds": (119, "119 s"),
    "minutes": (2 * 60, "2 min"),
    "hours": (47 * 3_600, "47 h"),
    "just under a day": (86_400 - 1, "24 h"),
    "just over a day": (86_400 + 1, "24 h"),
    "days": (9.4 * 86_400, "9 days"),
})  # fmt: skip
def test_duration_is_rounded_to_the_largest_unit_that_yields_at_least_two(
    seconds: float, words: str
) -> None:
    verdict = replace(_VERDICT, fresh_until=_NOW + seconds)

    assert summary(verdict, now=_NOW) == (
        "robots.txt is unreachable (timed out), and there is no usable cached copy;"
        f" next fetch in {words}"
    )


def test_stale_copy_is_shown_with_its_age() -> None:
    verdict = replace(
        _VERDICT,
        reason=Reason.NO_GROUP,
        is_stale=True,
        error=None,
        status=503,
        fetched_at=_NOW - 200_000,
    )

    assert summary(verdict, now=_NOW) == (
        "robots.txt has no group for this agent; cached 2 days ago,"
        " now unreachable (503); next fetch in 5 min"
    )
