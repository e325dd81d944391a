"""Builds the outcomes, entries and answers that the tests of caching/ talk about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.caching._outcome import Answered, BrokenRedirect, Failed, FailureKind
from robotsgate.caching._plan import entry_after
from robotsgate.caching._policy import Policy
from robotsgate.caching._ruling import Effect, ruling, verdict
from robotsgate.robotstxt._robots_txt import RobotsTxt

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._verdict import Verdict

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0

ORIGIN = "https://example.com"
NOW = 1_800_000_000.0
"""Friday, 15 January 2027, 08:00:00 GMT."""

RULES = b"User-agent: *\nDisallow: /private\n"
PUBLIC = f"{ORIGIN}/public"
PRIVATE = f"{ORIGIN}/private"
ROBOTS_TXT = f"{ORIGIN}/robots.txt"

PRESETS = {
    "default": Policy(),
    "google_today": Policy.google_today(),
    "google_2021": Policy.google_2021(),
    "rfc9309": Policy.rfc9309(),
    "strict": Policy.strict(),
}


def answered(
    status: int = 200, *, body: bytes | None = None, **headers: str
) -> Answered:
    """A response; of a 200 without a body, `RULES`; `cache_control` for a header."""
    if body is None:
        body = RULES if status == 200 else b""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answered(status=status, headers=named, body=body)


def failed(kind: FailureKind = FailureKind.CONNECT) -> Failed:
    """A fetch that ended without a response."""
    return Failed(kind=kind, error=f"failed: {kind.value}")


def refused() -> Failed:
    """A fetch that the address guard did not let happen."""
    return failed(FailureKind.ADDRESS_REFUSED)


def broken_redirect(error: str = "a redirect to nowhere") -> BrokenRedirect:
    """A redirect that was not followed."""
    return BrokenRedirect(status=302, error=error)


def first_entry(
    outcome: Outcome, *, now: float = NOW, policy: Policy | None = None
) -> Entry:
    """What is known after the first attempt ever."""
    return next_entry(None, outcome, now=now, policy=policy)


def next_entry(
    previous: Entry | None,
    outcome: Outcome,
    *,
    now: float,
    policy: Policy | None = None,
) -> Entry:
    """What is known after one more attempt."""
    return entry_after(
        previous, outcome, origin=ORIGIN, now=now, policy=policy or Policy()
    )


def entry_in_outage(*, has_copy: bool, since: float, policy: Policy) -> Entry:
    """An origin that failed for the first time at `since`."""
    good = None
    if has_copy:
        good = first_entry(answered(), now=since - DAY, policy=policy)
    return next_entry(good, answered(500), now=since, policy=policy)


def answer(entry: Entry, url: str, *, now: float, policy: Policy) -> Verdict:
    """The verdict on `url`, with the rules read from the copy where they decide."""
    found = ruling(entry, now=now, policy=policy)
    decides = found.effect is Effect.RULES and entry.copy is not None
    body = entry.copy.body if decides and entry.copy else b""
    match = RobotsTxt.parse(body).match("ExampleBot", url)
    return verdict(entry, found, match)
