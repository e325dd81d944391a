"""Builds outcomes, answers, outages and entries for the tests of `caching`."""

from __future__ import annotations

from typing import Any

from robotsgate.caching._entry import Answer, Entry, Outage, entry_after, pack
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._policy import AccessResult, Policy

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0

ORIGIN = "https://example.com"
NOW = 1_800_000_000.0
"""Friday, 15 January 2027, 08:00:00 GMT."""

RULES = b"User-agent: *\nDisallow: /private\n"

HOPS = (("https://example.com/a", 302), ("https://other.example/b", 301))
"""Two redirects that were followed."""

PRESETS = {
    "default": Policy(),
    "google_today": Policy.google_today(),
    "google_2021": Policy.google_2021(),
    "rfc9309": Policy.rfc9309(),
    "strict": Policy.strict(),
}


def answered(
    status: int = 200,
    *,
    body: bytes | None = None,
    is_wall: bool = False,
    **headers: str,
) -> Outcome:
    """A response; a 200 has `RULES` by default, and `cache_control` is a header."""
    if body is None:
        body = RULES if status == 200 else b""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Outcome(status=status, headers=named, body=body, is_wall=is_wall)


def failed(kind: FailureKind = FailureKind.CONNECT) -> Outcome:
    """A fetch that ended without a response."""
    return Outcome(failure=kind, error=f"failed: {kind.value}")


def too_many_redirects(status: int = 302, **headers: str) -> Outcome:
    """A redirect that was not followed."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Outcome(
        status=status,
        headers=named,
        redirects=HOPS,
        error="a sixth redirect",
        has_too_many_redirects=True,
    )


def answer(access: AccessResult = AccessResult.SUCCESSFUL, **fields: object) -> Answer:
    """An answer received at `NOW` and fresh for a day."""
    packed = pack(RULES) if access is AccessResult.SUCCESSFUL else None
    defaults: dict[str, Any] = {
        "answered_at": NOW,
        "fresh_until": NOW + DAY,
        "packed": packed,
    }
    return Answer(access=access, **(defaults | fields))


def outage(since: float, **fields: object) -> Outage:
    """An outage with one attempt, at `since`, which is evidence."""
    defaults: dict[str, Any] = {
        "since": since,
        "last_attempt_at": since,
        "retry_at": since + MINUTE,
        "attempts": 1,
        "evidence_since": since,
        "last_evidence_at": since,
        "days": 1,
        "status": 500,
    }
    return Outage(**(defaults | fields))


def no_evidence(since: float, **fields: object) -> Outage:
    """An outage with one attempt, at `since`, which is not evidence."""
    nothing: dict[str, object] = {
        "evidence_since": None,
        "last_evidence_at": None,
        "days": 0,
    }
    return outage(since, **(nothing | fields))


def entry(answer: Answer | None = None, outage: Outage | None = None) -> Entry:
    """An entry for `ORIGIN`."""
    return Entry(origin=ORIGIN, answer=answer, outage=outage)


def attempt(
    known: Entry | None,
    outcome: Outcome,
    *,
    now: float = NOW,
    began_at: float | None = None,
    policy: Policy | None = None,
) -> Entry:
    """The entry after one more attempt, which ends at `now`."""
    return entry_after(
        known,
        outcome,
        origin=ORIGIN,
        began_at=now if began_at is None else began_at,
        now=now,
        policy=policy or Policy(),
    )


def attempts(*steps: tuple[float, Outcome], policy: Policy | None = None) -> Entry:
    """The entry after attempts at these times."""
    known = None
    for now, outcome in steps:
        known = attempt(known, outcome, now=now, policy=policy)
    assert known is not None
    return known
