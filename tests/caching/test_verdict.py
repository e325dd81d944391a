"""The verdict for a URL, given what applies; as a sentence and as JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import TYPE_CHECKING, Any

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


_RULE = Rule(kind=RuleKind.DISALLOW, pattern="/private", line=3)
_VERDICT = Verdict(
    allowed=False,
    url="https://example.com/private",
    agent="ExampleBot",
    reason=Reason.DISALLOWED_BY_RULE,
    rule=_RULE,
    group="examplebot",
    access=AccessResult.SUCCESSFUL,
    is_stale=False,
    origin="https://example.com",
    status=200,
    redirects=(),
    error=None,
    fetched_at=1_000_000_000.0,
    fresh_until=1_000_086_400.0,
)
_WITHOUT_RULE = replace(_VERDICT, rule=None)


_FILE = "https://example.com/robots.txt"
_BY_RULE = f"disallowed by line 3 (Disallow: /private, for examplebot) of {_FILE}"


@cases("verdict sentence", {
    "disallowed by a rule": (_VERDICT, _BY_RULE),
    "allowed by a rule for all agents": (
        replace(_VERDICT, allowed=True, reason=Reason.ALLOWED_BY_RULE, group="*",
                rule=Rule(kind=RuleKind.ALLOW, pattern="/", line=1)),
        f"allowed by line 1 (Allow: /, for all agents) of {_FILE}"),
    "no matching rule": (
        replace(_WITHOUT_RULE, allowed=True, reason=Reason.NO_MATCHING_RULE),
        f"allowed: none of the rules for examplebot in {_FILE} match"),
    "no group": (
        replace(_WITHOUT_RULE, allowed=True, reason=Reason.NO_GROUP, group=None),
        f"allowed: {_FILE} has no group for this agent"),
    "robots.txt itself": (
        replace(_WITHOUT_RULE, allowed=True, reason=Reason.ROBOTS_TXT),
        "allowed: robots.txt itself may always be fetched"),
    "unavailable": (
        replace(_WITHOUT_RULE, allowed=True, reason=Reason.UNAVAILABLE, status=404,
                access=AccessResult.UNAVAILABLE),
        f"allowed: {_FILE} is unavailable (404)"),
    "unreachable": (
        replace(_WITHOUT_RULE, reason=Reason.UNREACHABLE, error="timed out",
                access=AccessResult.UNREACHABLE),
        (f"disallowed: {_FILE} is unreachable (timed out),"
         " and there is no usable cached copy")),
    "unreachable for too long": (
        replace(_WITHOUT_RULE, allowed=True, reason=Reason.UNREACHABLE_TOO_LONG,
                access=AccessResult.UNREACHABLE, status=503),
        f"allowed: {_FILE} has been unreachable for too long (503)"),
    "address refused": (
        replace(_WITHOUT_RULE, reason=Reason.ADDRESS_REFUSED, status=None,
                access=AccessResult.REFUSED, error="a loopback address"),
        f"disallowed: {_FILE} was not fetched: a loopback address"),
    "a rule of an override": (
        replace(_VERDICT, reason=Reason.OVERRIDDEN),
        _BY_RULE.replace(_FILE, f"the override for {_FILE}")),
    "no rule of an override": (
        replace(_WITHOUT_RULE, allowed=True, reason=Reason.OVERRIDDEN),
        f"allowed: none of the rules in the override for {_FILE} match"),
    "restricted": (
        replace(_WITHOUT_RULE, reason=Reason.RESTRICTED, status=403,
                access=AccessResult.RESTRICTED),
        f"disallowed: access to {_FILE} is restricted (403)"),
})  # fmt: skip
def test_verdict_reads_as_one_sentence(verdict: Verdict, sentence: str) -> None:
    assert str(verdict) == sentence


_LONG = f"https://www.example.com/{'x' * 2_000}"


@cases("changes sentence", {
    "by a rule": ({}, _BY_RULE + ", which redirects to https://c.example/b.txt"),
    "without a file": (
        {"rule": None, "reason": Reason.UNAVAILABLE, "status": 404},
        (f"disallowed: {_FILE}, which redirects to https://c.example/b.txt,"
         " is unavailable (404)")),
    "to a long URL": (
        {"redirects": ((_LONG, 301),)},
        f"{_BY_RULE}, which redirects to {_LONG[:200]}…"),
    "to a URL with a control character": (
        {"redirects": (("https://c.example/\x1b", 301),)},
        _BY_RULE + r", which redirects to https://c.example/\x1b"),
})  # fmt: skip
def test_sentence_after_redirects_names_both_ends(
    changes: dict[str, Any], sentence: str
) -> None:
    redirects = (("https://b.example/", 301), ("https://c.example/b.txt", 302))

    assert str(replace(_VERDICT, **{"redirects": redirects} | changes)) == sentence


@cases("fetched_at error date", {
    "a date": (1_000_000_000.0, None, "2001-09-09T01:46:40Z"),
    "no date": (None, "timed out", "unknown date"),
    "beyond the year 9999": (1e15, "timed out", "epoch second 1000000000000000"),
})  # fmt: skip
def test_verdict_from_a_stale_copy_gives_its_date_and_the_error(
    fetched_at: float | None, error: str | None, date: str
) -> None:
    verdict = replace(
        _VERDICT, is_stale=True, fetched_at=fetched_at, status=503, error=error
    )

    assert str(verdict) == (
        f"{_BY_RULE}; using the cached copy from {date}, because the origin "
        f"is unreachable ({error or 503})"
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    by_rule = reason in {Reason.ALLOWED_BY_RULE, Reason.DISALLOWED_BY_RULE}
    verdict = replace(_VERDICT, reason=reason, rule=_RULE if by_rule else None)

    sentence = str(verdict)

    assert sentence.startswith("disallowed by" if by_rule else "disallowed: ")
    assert not sentence.endswith(".")
    assert "{" not in sentence


def test_as_dict_can_be_written_as_json() -> None:
    verdict = replace(
        _VERDICT,
        agent=("NewsBot", "ExampleBot"),
        redirects=(("https://www.example.com/robots.txt", 301),),
    )

    read_back = json.loads(json.dumps(verdict.as_dict(), allow_nan=False))

    assert read_back == {
        "allowed": False,
        "url": "https://example.com/private",
        "agent": ["NewsBot", "ExampleBot"],
        "reason": "disallowed-by-rule",
        "rule": {"kind": "disallow", "pattern": "/private", "line": 3},
        "group": "examplebot",
        "access": "successful",
        "is_stale": False,
        "origin": "https://example.com",
        "status": 200,
        "redirects": [["https://www.example.com/robots.txt", 301]],
        "error": None,
        "fetched_at": 1_000_000_000.0,
        "fresh_until": 1_000_086_400.0,
    }


@pytest.mark.parametrize("allowed", [True, False])
def test_verdict_is_true_if_and_only_if_it_allows(*, allowed: bool) -> None:
    assert bool(replace(_VERDICT, allowed=allowed)) is allowed


def test_verdict_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        _VERDICT.allowed = True  # type: ignore[misc]  # the error under test
