"""The answer as a sentence and as JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from robotsgate.caching._access import AccessResult
from robotsgate.caching._verdict import DisallowedError, Reason, Verdict
from robotsgate.errors import RobotsError
from robotsgate.robotstxt import Rule, RuleKind

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
    redirects=(("https://www.example.com/robots.txt", 301),),
    error=None,
    fetched_at=1_000_000_000.0,
    fresh_until=1_000_086_400.0,
)
_WITHOUT_RULE = replace(_VERDICT, rule=None)


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        pytest.param(
            _VERDICT,
            "disallowed: line 3 (Disallow: /private) for 'examplebot' in "
            "https://example.com/robots.txt decides",
            id="disallowed by a rule",
        ),
        pytest.param(
            replace(
                _VERDICT,
                allowed=True,
                reason=Reason.ALLOWED_BY_RULE,
                rule=Rule(kind=RuleKind.ALLOW, pattern="/", line=1),
                group="*",
            ),
            "allowed: line 1 (Allow: /) for any agent in "
            "https://example.com/robots.txt decides",
            id="allowed by a rule of any agent",
        ),
        pytest.param(
            replace(_WITHOUT_RULE, allowed=True, reason=Reason.NO_MATCHING_RULE),
            "allowed: no rule for 'examplebot' matches in https://example.com/robots.txt",
            id="no matching rule",
        ),
        pytest.param(
            replace(_WITHOUT_RULE, allowed=True, reason=Reason.NO_GROUP, group=None),
            "allowed: no group in https://example.com/robots.txt is for this agent",
            id="no group",
        ),
        pytest.param(
            replace(_WITHOUT_RULE, allowed=True, reason=Reason.ROBOTS_TXT),
            "allowed: robots.txt itself may always be fetched",
            id="robots.txt itself",
        ),
        pytest.param(
            replace(
                _WITHOUT_RULE,
                allowed=True,
                reason=Reason.UNAVAILABLE,
                access=AccessResult.UNAVAILABLE,
                status=404,
            ),
            "allowed: https://example.com/robots.txt is unavailable (status 404)",
            id="unavailable",
        ),
        pytest.param(
            replace(
                _WITHOUT_RULE,
                reason=Reason.UNREACHABLE,
                access=AccessResult.UNREACHABLE,
                status=None,
                error="connection refused",
            ),
            "disallowed: https://example.com/robots.txt is unreachable "
            "(connection refused) and no copy may be used",
            id="unreachable",
        ),
        pytest.param(
            replace(
                _WITHOUT_RULE,
                allowed=True,
                reason=Reason.UNREACHABLE_TOO_LONG,
                access=AccessResult.UNREACHABLE,
                status=503,
            ),
            "allowed: https://example.com/robots.txt has been unreachable for too "
            "long (status 503)",
            id="unreachable for too long",
        ),
        pytest.param(
            replace(
                _WITHOUT_RULE,
                reason=Reason.ADDRESS_REFUSED,
                access=AccessResult.REFUSED,
                status=None,
                error="127.0.0.1 is a loopback address",
            ),
            "disallowed: the address of https://example.com/robots.txt was refused "
            "(127.0.0.1 is a loopback address)",
            id="address refused",
        ),
        pytest.param(
            replace(_VERDICT, reason=Reason.OVERRIDDEN),
            "disallowed: line 3 (Disallow: /private) for 'examplebot' in the override "
            "of https://example.com/robots.txt decides",
            id="a rule of an override",
        ),
        pytest.param(
            replace(_WITHOUT_RULE, allowed=True, reason=Reason.OVERRIDDEN),
            "allowed: no rule of the override of https://example.com/robots.txt "
            "matches",
            id="no rule of an override",
        ),
        pytest.param(
            replace(
                _WITHOUT_RULE,
                reason=Reason.RESTRICTED,
                access=AccessResult.RESTRICTED,
                status=403,
            ),
            "disallowed: https://example.com/robots.txt is restricted (status 403)",
            id="restricted",
        ),
        pytest.param(
            replace(_VERDICT, is_stale=True, status=503),
            "disallowed: line 3 (Disallow: /private) for 'examplebot' in "
            "https://example.com/robots.txt decides; that is the copy of "
            "2001-09-09 01:46:40+00:00, because the origin is unreachable (status 503)",
            id="a stale copy",
        ),
        pytest.param(
            replace(_VERDICT, is_stale=True, fetched_at=None, error="timed out"),
            "disallowed: line 3 (Disallow: /private) for 'examplebot' in "
            "https://example.com/robots.txt decides; that is the copy of "
            "unknown date, because the origin is unreachable (timed out)",
            id="a stale copy without a date",
        ),
        pytest.param(
            replace(_VERDICT, is_stale=True, fetched_at=1e15, error="timed out"),
            "disallowed: line 3 (Disallow: /private) for 'examplebot' in "
            "https://example.com/robots.txt decides; that is the copy of "
            "epoch second 1000000000000000, because the origin is unreachable "
            "(timed out)",
            id="a stale copy from beyond the year 9999",
        ),
    ],
)
def test_verdict_reads_as_one_sentence(verdict: Verdict, sentence: str) -> None:
    assert str(verdict) == sentence


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    by_rule = reason in {Reason.ALLOWED_BY_RULE, Reason.DISALLOWED_BY_RULE}
    verdict = replace(_VERDICT, reason=reason, rule=_RULE if by_rule else None)

    sentence = str(verdict)

    assert sentence.startswith("disallowed: ")
    assert not sentence.endswith(".")
    assert "{" not in sentence


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("access", AccessResult)
def test_as_dict_is_json(reason: Reason, access: AccessResult) -> None:
    verdict = replace(_VERDICT, reason=reason, access=access)

    read_back = json.loads(json.dumps(verdict.as_dict(), allow_nan=False))

    assert read_back == {
        "allowed": False,
        "url": "https://example.com/private",
        "agent": "ExampleBot",
        "reason": reason.value,
        "rule": {"kind": "disallow", "pattern": "/private", "line": 3},
        "group": "examplebot",
        "access": access.value,
        "is_stale": False,
        "origin": "https://example.com",
        "status": 200,
        "redirects": [["https://www.example.com/robots.txt", 301]],
        "error": None,
        "fetched_at": 1_000_000_000.0,
        "fresh_until": 1_000_086_400.0,
    }


def test_as_dict_lists_the_agents_of_a_sequence() -> None:
    verdict = replace(_VERDICT, agent=("NewsBot", "ExampleBot"))

    assert verdict.as_dict()["agent"] == ["NewsBot", "ExampleBot"]


@pytest.mark.parametrize("allowed", [True, False])
def test_verdict_is_true_exactly_if_it_allows(*, allowed: bool) -> None:
    assert bool(replace(_VERDICT, allowed=allowed)) is allowed


def test_as_dict_without_a_rule_says_none() -> None:
    assert _WITHOUT_RULE.as_dict()["rule"] is None


def test_as_dict_names_every_field() -> None:
    assert list(_VERDICT.as_dict()) == list(Verdict.__dataclass_fields__)


def test_verdict_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        _VERDICT.allowed = True  # type: ignore[misc]  # the mistake under test


def test_disallowed_error_carries_its_verdict_and_says_it() -> None:
    error = DisallowedError(_VERDICT)

    assert isinstance(error, RobotsError)
    assert error.verdict is _VERDICT
    assert str(error) == str(_VERDICT)


@pytest.mark.parametrize(
    ("kind", "line"),
    [(RuleKind.ALLOW, "Allow: /a"), (RuleKind.DISALLOW, "Disallow: /a")],
)
def test_rule_reads_as_its_line(kind: RuleKind, line: str) -> None:
    assert str(Rule(kind=kind, pattern="/a", line=1)) == line
