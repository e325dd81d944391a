"""The verdict for a URL, given the entry, what applies, and the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._policy import AccessResult, Policy
from robotsgate.caching._verdict import Reason, Verdict, explain, in_force
from robotsgate.robotstxt._model import Rule, RuleKind
from robotsgate.robotstxt._robots_txt import RobotsTxt
from tests.tables import cases

from .builders import DAY, HOPS, MINUTE, NOW, ORIGIN, answer, entry, outage

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Outage

RULES = RobotsTxt.parse("User-agent: *\nDisallow: /private\nAllow: /private/but\n")
NO_GROUP = RobotsTxt.parse("User-agent: OtherBot\nDisallow: /\n")
DISALLOW = Rule(kind=RuleKind.DISALLOW, pattern="/private", line=2)
ALLOW = Rule(kind=RuleKind.ALLOW, pattern="/private/but", line=3)

URL = f"{ORIGIN}/private"

COPY = answer(status=203, redirects=HOPS)
FAILING = outage(NOW + DAY, status=503, redirects=HOPS[:1], error="too busy")
TOO_LONG = replace(
    FAILING,
    since=NOW,
    evidence_since=NOW - 31 * DAY,
    days=9,
)

BY_RULES = Verdict(
    allowed=False,
    url=URL,
    agent="ExampleBot",
    reason=Reason.DISALLOWED_BY_RULE,
    rule=DISALLOW,
    group="*",
    access=AccessResult.SUCCESSFUL,
    is_stale=False,
    origin=ORIGIN,
    status=203,
    redirects=HOPS,
    error=None,
    fetched_at=NOW,
    fresh_until=NOW + DAY,
)
STALE = replace(
    BY_RULES,
    access=AccessResult.UNREACHABLE,
    is_stale=True,
    status=503,
    error="too busy",
    fresh_until=NOW + DAY + MINUTE,
)
UNREACHABLE = replace(
    STALE,
    reason=Reason.UNREACHABLE,
    rule=None,
    group=None,
    is_stale=False,
    redirects=HOPS[:1],
    fetched_at=None,
)


def verdict(
    last: Answer | None,
    since: Outage | None,
    path: str = "/private",
    *,
    rules: RobotsTxt = RULES,
) -> Verdict:
    known = entry(last, since)
    now = NOW if since is None else since.last_attempt_at
    standing = in_force(known, now=now, policy=Policy())
    match = rules.match("ExampleBot", ORIGIN + path)
    return explain(known, standing, match, url=URL, agent="ExampleBot")


def of_answer(access: AccessResult, reason: Reason, *, allowed: bool) -> Verdict:
    """A verdict that does not depend on rules."""
    return replace(
        BY_RULES, allowed=allowed, reason=reason, rule=None, group=None, access=access
    )


@cases("path rules expected", {
    "disallowed": ("/private", RULES, BY_RULES),
    "allowed": ("/private/but", RULES,
        replace(BY_RULES, allowed=True, reason=Reason.ALLOWED_BY_RULE, rule=ALLOW)),
    "no rule": ("/public", RULES,
        replace(BY_RULES, allowed=True, reason=Reason.NO_MATCHING_RULE, rule=None)),
    "no group": ("/private", NO_GROUP,
        replace(BY_RULES, allowed=True, reason=Reason.NO_GROUP, rule=None, group=None)),
})  # fmt: skip
def test_verdict_follows_the_rules_of_a_fresh_file(
    path: str, rules: RobotsTxt, expected: Verdict
) -> None:
    assert verdict(COPY, None, path, rules=rules) == expected


@cases("last since expected", {
    "a stale copy": (COPY, FAILING, STALE),
    "a fresh file whose early refresh failed":
        (COPY, outage(NOW + 1, error="too busy"), replace(BY_RULES)),
    "unavailable": (answer(AccessResult.UNAVAILABLE, status=203, redirects=HOPS), None,
        of_answer(AccessResult.UNAVAILABLE, Reason.UNAVAILABLE, allowed=True)),
    "restricted": (answer(AccessResult.RESTRICTED, status=203, redirects=HOPS), None,
        of_answer(AccessResult.RESTRICTED, Reason.RESTRICTED, allowed=False)),
    "refused": (answer(AccessResult.REFUSED, error="loopback"), None,
        replace(of_answer(AccessResult.REFUSED, Reason.ADDRESS_REFUSED, allowed=False),
        status=None, redirects=(), error="loopback")),
    "unreachable": (None, FAILING, UNREACHABLE),
    "unreachable after an answer without a file":
        (answer(AccessResult.UNAVAILABLE), FAILING, UNREACHABLE),
    "unreachable for too long": (None, TOO_LONG,
        replace(UNREACHABLE, allowed=True, reason=Reason.UNREACHABLE_TOO_LONG)),
    "unreachable for too long after restricted": (answer(AccessResult.RESTRICTED),
        TOO_LONG, replace(UNREACHABLE, reason=Reason.UNREACHABLE_TOO_LONG)),
})  # fmt: skip
def test_verdict_reports_what_applies(
    last: Answer | None, since: Outage | None, expected: Verdict
) -> None:
    assert verdict(last, since) == expected


@pytest.mark.parametrize(("last", "since"), [
    (COPY, None), (COPY, FAILING), (None, FAILING), (None, TOO_LONG),
    (answer(AccessResult.UNAVAILABLE), None), (answer(AccessResult.RESTRICTED), None),
])  # fmt: skip
def test_robots_txt_itself_is_allowed(
    last: Answer | None, since: Outage | None
) -> None:
    """RFC 9309 §2.2.2; `match.is_robots_txt` tells whether this applies."""
    result = verdict(last, since, "/robots.txt")

    assert result.allowed
    assert result.reason is Reason.ROBOTS_TXT
    assert result.rule is None
