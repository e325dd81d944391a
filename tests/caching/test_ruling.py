"""RFC 9309 §2.3.1: what an entry means, and the verdicts that come of it."""

from __future__ import annotations

import dataclasses
import math

import pytest

from robotsgate.caching._access import AccessResult
from robotsgate.caching._outcome import Answered, FailureKind, Outcome
from robotsgate.caching._policy import AfterStaleWindow, Policy
from robotsgate.caching._ruling import Effect, Ruling, ruling, verdict
from robotsgate.caching._verdict import Reason
from robotsgate.robotstxt._model import Match, Rule, RuleKind

from .builders import (
    DAY,
    HOUR,
    NOW,
    ORIGIN,
    PRESETS,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    answer,
    answered,
    broken_redirect,
    entry_in_outage,
    failed,
    first_entry,
    next_entry,
    refused,
)

RULE_DECIDES = Reason.DISALLOWED_BY_RULE
MISSING_PAGE = answered(503, body=b"<title>Page not found</title>")

# What the first attempt ever brought; under the default policy: is PUBLIC
# allowed, is PRIVATE allowed, and why; then the presets that differ.
Answers = tuple[bool, bool, Reason]
ALL_BY_RULES: Answers = (True, False, RULE_DECIDES)
ALL_FOR_WANT_OF_RULES: Answers = (True, True, Reason.NO_GROUP)
ALL_UNAVAILABLE: Answers = (True, True, Reason.UNAVAILABLE)
NONE_UNREACHABLE: Answers = (False, False, Reason.UNREACHABLE)
NONE_RESTRICTED: Answers = (False, False, Reason.RESTRICTED)
NONE_REFUSED: Answers = (False, False, Reason.ADDRESS_REFUSED)

FIRST_SIGHT: dict[str, tuple[Outcome, Answers, dict[str, Answers]]] = {
    **{
        f"{status} with rules is ruled by them": (
            answered(status, body=RULES),
            ALL_BY_RULES,
            {},
        )
        for status in (200, 206, 299)
    },
    "204 allows everything": (answered(204), ALL_FOR_WANT_OF_RULES, {}),
    "200 with an empty body allows everything": (
        answered(200, body=b""),
        ALL_FOR_WANT_OF_RULES,
        {},
    ),
    "200 with HTML allows everything": (
        answered(200, body=b"<!doctype html><title>Not found</title>"),
        ALL_FOR_WANT_OF_RULES,
        {},
    ),
    "200 with HTML around rules is ruled by them": (
        answered(200, body=b"<html>\n" + RULES + b"</html>"),
        ALL_BY_RULES,
        {},
    ),
    **{
        f"{status} allows everything": (answered(status), ALL_UNAVAILABLE, {})
        for status in (400, 404, 410, 451, 499)
    },
    **{
        f"{status} allows everything, but nothing for a strict policy": (
            answered(status),
            ALL_UNAVAILABLE,
            {"strict": NONE_RESTRICTED},
        )
        for status in (401, 403)
    },
    "429 allows nothing, but everything to the letter of the standard": (
        answered(429),
        NONE_UNREACHABLE,
        {"rfc9309": ALL_UNAVAILABLE},
    ),
    **{
        f"{status} allows nothing": (answered(status), NONE_UNREACHABLE, {})
        for status in (500, 502, 503, 504, 599, 100, 199, 304, 600, 999)
    },
    "a page that says not found allows everything, if pages are read": (
        MISSING_PAGE,
        ALL_UNAVAILABLE,
        {"rfc9309": NONE_UNREACHABLE, "strict": NONE_UNREACHABLE},
    ),
    "a broken redirect allows everything, but nothing for a strict policy": (
        broken_redirect(),
        ALL_UNAVAILABLE,
        {"strict": NONE_UNREACHABLE},
    ),
    **{
        f"failure in {kind.value} allows nothing": (failed(kind), NONE_UNREACHABLE, {})
        for kind in FailureKind
        if kind is not FailureKind.ADDRESS_REFUSED
    },
    "a refused address allows nothing": (refused(), NONE_REFUSED, {}),
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("row", FIRST_SIGHT)
def test_first_answer_decides(row: str, preset: str) -> None:
    outcome, by_default, exceptions = FIRST_SIGHT[row]
    policy = PRESETS[preset]
    entry = first_entry(outcome, policy=policy)

    public = answer(entry, PUBLIC, now=NOW, policy=policy)
    private = answer(entry, PRIVATE, now=NOW, policy=policy)

    expected = exceptions.get(preset, by_default)
    assert (public.allowed, private.allowed, private.reason) == expected
    assert not public.is_stale
    assert public.access is entry.access


# With a good copy, at the moment of the first failure.
WITH_A_COPY = {
    "default": ALL_BY_RULES,
    "google_today": NONE_UNREACHABLE,
    "google_2021": NONE_UNREACHABLE,
    "rfc9309": ALL_BY_RULES,
    "strict": ALL_BY_RULES,
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "outcome",
    [
        *(
            pytest.param(answered(status), id=f"{status} after a good copy")
            for status in (500, 502, 503, 504, 599, 100, 304, 600, 999)
        ),
        *(
            pytest.param(failed(kind), id=f"failure in {kind.value} after a good copy")
            for kind in FailureKind
            if kind is not FailureKind.ADDRESS_REFUSED
        ),
    ],
)
def test_failure_after_a_good_copy_falls_back_on_it(
    outcome: Outcome, preset: str
) -> None:
    policy = PRESETS[preset]
    good = first_entry(answered(), now=NOW - DAY, policy=policy)
    entry = next_entry(good, outcome, now=NOW, policy=policy)

    public = answer(entry, PUBLIC, now=NOW, policy=policy)
    private = answer(entry, PRIVATE, now=NOW, policy=policy)

    found = (public.allowed, private.allowed, private.reason)
    assert found == WITH_A_COPY[preset]
    assert private.is_stale is (found == ALL_BY_RULES)


@pytest.mark.parametrize(
    ("outcome", "policy", "expected"),
    [
        (answered(404), Policy(), ALL_UNAVAILABLE),
        (answered(410), Policy.strict(), ALL_UNAVAILABLE),
        (answered(403), Policy(), ALL_UNAVAILABLE),
        (answered(403), Policy.strict(), NONE_RESTRICTED),
        (broken_redirect(), Policy(), ALL_UNAVAILABLE),
        (MISSING_PAGE, Policy(), ALL_UNAVAILABLE),
        (answered(429), Policy(), ALL_BY_RULES),
        (answered(429), Policy.rfc9309(), ALL_UNAVAILABLE),
        (refused(), Policy(), NONE_REFUSED),
    ],
    ids=[
        "a 404 opens what the copy closed",
        "a 410 opens what the copy closed",
        "a 403 opens what the copy closed",
        "a 403 closes what the copy opened for a strict policy",
        "a broken redirect opens what the copy closed",
        "a missing page opens what the copy closed",
        "a 429 falls back on the copy",
        "a 429 opens what the copy closed, to the letter of the standard",
        "a refused address closes what the copy opened",
    ],
)
def test_answer_after_a_good_copy_decides(
    outcome: Outcome, policy: Policy, expected: Answers
) -> None:
    good = first_entry(answered(), now=NOW - DAY, policy=policy)
    entry = next_entry(good, outcome, now=NOW, policy=policy)

    public = answer(entry, PUBLIC, now=NOW, policy=policy)
    private = answer(entry, PRIVATE, now=NOW, policy=policy)

    assert (public.allowed, private.allowed, private.reason) == expected


LAST = -1e-3
"""Milliseconds before the boundary."""

OUTAGE: list[tuple[str, bool, float, Effect, Reason | None]] = [
    # preset, has_copy, seconds since the first failure, effect, reason
    ("default", True, 0, Effect.RULES, None),
    ("default", True, 30 * DAY + LAST, Effect.RULES, None),
    ("default", True, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("default", False, 0, Effect.DISALLOW, Reason.UNREACHABLE),
    ("default", False, 30 * DAY + LAST, Effect.DISALLOW, Reason.UNREACHABLE),
    ("default", False, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("google_today", True, 0, Effect.DISALLOW, Reason.UNREACHABLE),
    ("google_today", True, 12 * HOUR + LAST, Effect.DISALLOW, Reason.UNREACHABLE),
    ("google_today", True, 12 * HOUR, Effect.RULES, None),
    ("google_today", True, 30 * DAY + LAST, Effect.RULES, None),
    ("google_today", True, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("google_today", False, 12 * HOUR, Effect.DISALLOW, Reason.UNREACHABLE),
    ("google_today", False, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("google_2021", True, 0, Effect.DISALLOW, Reason.UNREACHABLE),
    ("google_2021", True, 30 * DAY + LAST, Effect.DISALLOW, Reason.UNREACHABLE),
    ("google_2021", True, 30 * DAY, Effect.RULES, None),
    ("google_2021", True, 3_000 * DAY, Effect.RULES, None),
    ("google_2021", False, 30 * DAY + LAST, Effect.DISALLOW, Reason.UNREACHABLE),
    ("google_2021", False, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("rfc9309", True, 30 * DAY + LAST, Effect.RULES, None),
    ("rfc9309", True, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("rfc9309", False, 0, Effect.DISALLOW, Reason.UNREACHABLE),
    ("rfc9309", False, 30 * DAY, Effect.ALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("strict", True, 30 * DAY + LAST, Effect.RULES, None),
    ("strict", True, 30 * DAY, Effect.DISALLOW, Reason.UNREACHABLE_TOO_LONG),
    ("strict", False, 0, Effect.DISALLOW, Reason.UNREACHABLE),
    ("strict", False, 30 * DAY, Effect.DISALLOW, Reason.UNREACHABLE_TOO_LONG),
]


def outage_row_id(row: tuple[str, bool, float, Effect, Reason | None]) -> str:
    preset, has_copy, seconds, effect, _ = row
    copy = "with a copy" if has_copy else "without a copy"
    return f"{preset} {copy} after {seconds / DAY:.4g} days is {effect.value}"


@pytest.mark.parametrize("row", OUTAGE, ids=outage_row_id)
def test_phase_of_the_outage_decides(
    row: tuple[str, bool, float, Effect, Reason | None],
) -> None:
    preset, has_copy, seconds, effect, reason = row
    policy = PRESETS[preset]
    entry = entry_in_outage(has_copy=has_copy, since=NOW, policy=policy)

    found = ruling(entry, now=NOW + seconds, policy=policy)

    assert (found.effect, found.reason) == (effect, reason)
    assert found.is_stale is (effect is Effect.RULES)


@pytest.mark.parametrize(
    ("after", "has_copy", "effect"),
    [
        pytest.param(AfterStaleWindow.ALLOW, True, Effect.ALLOW, id="allow, copy"),
        pytest.param(AfterStaleWindow.ALLOW, False, Effect.ALLOW, id="allow, no copy"),
        pytest.param(AfterStaleWindow.LAST_COPY, True, Effect.RULES, id="last, copy"),
        pytest.param(
            AfterStaleWindow.LAST_COPY, False, Effect.ALLOW, id="last, no copy"
        ),
        pytest.param(
            AfterStaleWindow.DISALLOW, True, Effect.DISALLOW, id="disallow, copy"
        ),
        pytest.param(
            AfterStaleWindow.DISALLOW, False, Effect.DISALLOW, id="disallow, no copy"
        ),
    ],
)
@pytest.mark.parametrize("failures_later", [False, True])
def test_policy_chooses_what_comes_after_the_stale_window(
    after: AfterStaleWindow,
    effect: Effect,
    *,
    has_copy: bool,
    failures_later: bool,
) -> None:
    policy = Policy(stale_window=DAY, after_stale_window=after)
    entry = entry_in_outage(has_copy=has_copy, since=NOW, policy=policy)
    if failures_later:
        entry = next_entry(entry, answered(500), now=NOW + DAY, policy=policy)

    found = ruling(entry, now=NOW + DAY, policy=policy)

    assert found.effect is effect
    assert found.is_stale is (effect is Effect.RULES)


def test_grace_goes_before_the_end_of_the_window() -> None:
    policy = Policy(outage_grace=2 * DAY, stale_window=DAY)
    entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

    at_window_end = ruling(entry, now=NOW + DAY, policy=policy)
    at_grace_end = ruling(entry, now=NOW + 2 * DAY, policy=policy)

    assert at_window_end.effect is Effect.DISALLOW
    assert at_grace_end.effect is Effect.ALLOW


def test_window_of_no_length_is_over_at_once() -> None:
    policy = Policy(stale_window=0)
    entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

    found = ruling(entry, now=NOW, policy=policy)

    assert found.effect is Effect.ALLOW


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("has_copy", [True, False])
@pytest.mark.parametrize("days", [0, 1, 29, 30, 31, 365, 3_650])
def test_refused_address_is_never_allowed(
    preset: str, days: float, *, has_copy: bool
) -> None:
    policy = PRESETS[preset]
    before = first_entry(answered(), policy=policy) if has_copy else None
    entry = next_entry(before, refused(), now=NOW + DAY, policy=policy)

    found = ruling(entry, now=NOW + DAY + days * DAY, policy=policy)

    assert found.effect is Effect.REFUSE
    assert found.reason is Reason.ADDRESS_REFUSED
    assert not found.is_stale
    assert not answer(entry, PUBLIC, now=NOW + DAY, policy=policy).allowed


@pytest.mark.parametrize("preset", PRESETS)
def test_refusal_after_a_long_outage_is_not_allowed_either(preset: str) -> None:
    policy = PRESETS[preset]
    entry = entry_in_outage(has_copy=False, since=NOW, policy=policy)
    for day in range(1, 31):
        entry = next_entry(entry, failed(), now=NOW + day * DAY, policy=policy)

    entry = next_entry(entry, refused(), now=NOW + 31 * DAY, policy=policy)
    found = ruling(entry, now=NOW + 31 * DAY, policy=policy)

    assert found.effect is Effect.REFUSE


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("has_copy", [True, False])
def test_caller_without_free_connections_for_months_is_never_let_in_for_that(
    preset: str, *, has_copy: bool
) -> None:
    policy = PRESETS[preset]
    entry = first_entry(answered() if has_copy else refused(), policy=policy)
    for day in range(1, 100):
        entry = next_entry(
            entry, failed(FailureKind.POOL), now=NOW + day * DAY, policy=policy
        )

    found = ruling(entry, now=NOW + 99 * DAY, policy=policy)

    goes_on = has_copy and preset == "google_2021"
    assert found.effect is (Effect.RULES if goes_on else Effect.DISALLOW)
    assert entry.failures == (0 if has_copy else 1)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("has_copy", [True, False])
def test_failure_after_a_pool_that_was_full_for_a_whole_window_starts_a_new_one(
    preset: str, *, has_copy: bool
) -> None:
    policy = PRESETS[preset]
    entry = entry_in_outage(has_copy=has_copy, since=NOW, policy=policy)
    for day in range(1, 32):
        entry = next_entry(
            entry, failed(FailureKind.POOL), now=NOW + day * DAY, policy=policy
        )

    entry = next_entry(entry, failed(), now=NOW + 32 * DAY, policy=policy)
    found = ruling(entry, now=NOW + 32 * DAY, policy=policy)

    assert found.effect is Effect.DISALLOW
    assert entry.unreachable_since == NOW + 32 * DAY


def test_full_pool_within_an_outage_does_not_lengthen_the_use_of_a_copy() -> None:
    policy = Policy()
    entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)
    entry = next_entry(entry, failed(FailureKind.POOL), now=NOW + DAY, policy=policy)
    entry = next_entry(entry, failed(), now=NOW + 29 * DAY, policy=policy)

    assert entry.unreachable_since == NOW
    assert entry.copy is not None


@pytest.mark.parametrize("preset", PRESETS)
def test_failure_after_long_refusal_starts_a_new_window(preset: str) -> None:
    policy = PRESETS[preset]
    entry = first_entry(refused(), policy=policy)
    for day in range(1, 40):
        entry = next_entry(entry, refused(), now=NOW + day * DAY, policy=policy)

    entry = next_entry(entry, failed(), now=NOW + 40 * DAY, policy=policy)
    found = ruling(entry, now=NOW + 69 * DAY, policy=policy)

    assert found.effect is Effect.DISALLOW
    assert found.reason is Reason.UNREACHABLE


class TestUntil:
    @pytest.mark.parametrize(
        ("outcome", "policy"),
        [
            pytest.param(answered(), Policy(), id="rules"),
            pytest.param(answered(404), Policy(), id="full allow"),
            pytest.param(answered(403), Policy.strict(), id="restricted"),
            pytest.param(answered(500), Policy(), id="unreachable"),
            pytest.param(refused(), Policy(), id="refused"),
        ],
    )
    def test_ruling_stands_until_the_next_fetch(
        self, outcome: Outcome, policy: Policy
    ) -> None:
        entry = first_entry(outcome, policy=policy)

        found = ruling(entry, now=NOW, policy=policy)

        assert found.until == entry.next_fetch_at

    def test_ruling_ends_with_the_grace(self) -> None:
        policy = Policy(outage_grace=60, retry_initial=HOUR)
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        found = ruling(entry, now=NOW, policy=policy)
        then = ruling(entry, now=found.until, policy=policy)

        assert found == Ruling(
            effect=Effect.DISALLOW, reason=Reason.UNREACHABLE, until=NOW + 60
        )
        assert then == Ruling(
            effect=Effect.RULES, is_stale=True, until=entry.next_fetch_at
        )

    def test_ruling_ends_with_the_window(self) -> None:
        policy = Policy(stale_window=60, retry_initial=HOUR)
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        found = ruling(entry, now=NOW, policy=policy)
        then = ruling(entry, now=found.until, policy=policy)

        assert found.effect is Effect.RULES
        assert found.until == NOW + 60
        assert then.effect is Effect.ALLOW
        assert then.until == entry.next_fetch_at


class TestClock:
    def test_stale_copy_does_not_outlive_its_window_on_a_clock_set_back(self) -> None:
        policy = Policy()
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        entry = next_entry(entry, answered(500), now=NOW - 20 * DAY, policy=policy)
        in_window = ruling(entry, now=NOW + 10 * DAY + LAST, policy=policy)
        after = ruling(entry, now=NOW + 10 * DAY, policy=policy)

        assert in_window.effect is Effect.RULES
        assert after.effect is Effect.ALLOW

    def test_clock_set_forward_over_the_window_ends_it(self) -> None:
        policy = Policy.strict()
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        found = ruling(entry, now=NOW + 365 * DAY, policy=policy)

        assert found.effect is Effect.DISALLOW
        assert found.reason is Reason.UNREACHABLE_TOO_LONG

    def test_entry_without_the_start_of_its_outage_counts_from_now(self) -> None:
        """Only a damaged store can hold one; it must not open the origin."""
        entry = dataclasses.replace(
            entry_in_outage(has_copy=False, since=NOW, policy=Policy()),
            unreachable_since=None,
        )

        found = ruling(entry, now=NOW + 365 * DAY, policy=Policy())

        assert found.effect is Effect.DISALLOW


def test_copy_that_is_still_fresh_is_not_stale() -> None:
    """A refresh may be forced, or the clock set back, before its time is over."""
    policy = Policy()
    good = first_entry(answered(), policy=policy)

    entry = next_entry(good, answered(503), now=NOW + HOUR, policy=policy)
    found = ruling(entry, now=NOW + HOUR, policy=policy)

    assert found.effect is Effect.RULES
    assert not found.is_stale


class TestVerdict:
    def test_rules_are_named_with_their_line(self) -> None:
        entry = first_entry(answered())

        found = answer(entry, PRIVATE, now=NOW, policy=Policy())

        assert not found.allowed
        assert found.reason is Reason.DISALLOWED_BY_RULE
        assert found.rule is not None
        assert found.rule.line == 2
        assert found.group == "*"
        assert found.access is AccessResult.SUCCESSFUL
        assert found.origin == ORIGIN
        assert found.status == 200
        assert found.error is None
        assert found.fetched_at == NOW
        assert found.fresh_until == NOW + DAY

    @pytest.mark.parametrize(
        ("body", "url", "allowed", "reason"),
        [
            pytest.param(
                b"User-agent: *\nDisallow: /\nAllow: /public",
                PUBLIC,
                True,
                Reason.ALLOWED_BY_RULE,
                id="an allow rule",
            ),
            pytest.param(
                RULES, PRIVATE, False, Reason.DISALLOWED_BY_RULE, id="a disallow rule"
            ),
            pytest.param(
                RULES, PUBLIC, True, Reason.NO_MATCHING_RULE, id="no rule that matches"
            ),
            pytest.param(
                b"User-agent: other\nDisallow: /",
                PRIVATE,
                True,
                Reason.NO_GROUP,
                id="no group for the agent",
            ),
            pytest.param(
                b"User-agent: *\nDisallow: /",
                ROBOTS_TXT,
                True,
                Reason.ROBOTS_TXT,
                id="robots.txt itself",
            ),
        ],
    )
    def test_reason_is_that_of_the_rules(
        self, body: bytes, url: str, reason: Reason, *, allowed: bool
    ) -> None:
        entry = first_entry(answered(body=body))

        found = answer(entry, url, now=NOW, policy=Policy())

        assert found.allowed is allowed
        assert found.reason is reason

    def test_file_without_a_match_allows(self) -> None:
        entry = first_entry(answered(body=b""))

        found = verdict(entry, ruling(entry, now=NOW, policy=Policy()), None)

        assert found.allowed
        assert found.reason is Reason.NO_GROUP
        assert found.rule is None
        assert found.group is None

    @pytest.mark.parametrize(
        ("outcome", "policy"),
        [
            pytest.param(answered(404), Policy(), id="unavailable"),
            pytest.param(answered(500), Policy(), id="unreachable"),
            pytest.param(answered(403), Policy.strict(), id="restricted"),
        ],
    )
    def test_robots_txt_itself_is_always_allowed(
        self, outcome: Outcome, policy: Policy
    ) -> None:
        """RFC 9309 §2.2.2."""
        entry = first_entry(outcome, policy=policy)

        found = answer(entry, ROBOTS_TXT, now=NOW, policy=policy)

        assert found.allowed
        assert found.reason is Reason.ROBOTS_TXT

    @pytest.mark.parametrize("outcome", [answered(404), answered(500), refused()])
    def test_rules_have_no_say_where_they_are_not_in_force(
        self, outcome: Outcome
    ) -> None:
        entry = first_entry(outcome)
        found = ruling(entry, now=NOW, policy=Policy())
        rule = Rule(kind=RuleKind.ALLOW, pattern="/", line=2)
        match = Match(allowed=found.effect is Effect.DISALLOW, rule=rule, group="*")

        said = verdict(entry, found, match)

        assert said.allowed is (found.effect is Effect.ALLOW)
        assert said.reason is found.reason
        assert said.rule is None
        assert said.group is None

    def test_stale_copy_is_named_with_its_own_dates(self) -> None:
        good = first_entry(answered())
        entry = next_entry(good, failed(), now=NOW + DAY)

        found = answer(entry, PRIVATE, now=NOW + DAY, policy=Policy())

        assert found.is_stale
        assert found.access is AccessResult.UNREACHABLE
        assert found.status is None
        assert found.error == "failed: connect"
        assert found.fetched_at == NOW
        assert found.fresh_until == NOW + DAY
        assert found.rule is not None
        assert found.rule.line == 2

    def test_response_that_decides_has_its_date(self) -> None:
        entry = first_entry(Answered(status=503, redirects=2))

        found = answer(entry, PUBLIC, now=NOW, policy=Policy())

        assert found.status == 503
        assert found.redirects == 2
        assert found.fetched_at == NOW
        assert found.fresh_until == entry.next_fetch_at

    @pytest.mark.parametrize("outcome", [failed(), refused()])
    def test_failure_without_a_response_has_no_date(self, outcome: Outcome) -> None:
        entry = first_entry(outcome)

        found = answer(entry, PUBLIC, now=NOW, policy=Policy())

        assert found.fetched_at is None
        assert found.fresh_until == entry.next_fetch_at

    def test_dates_of_a_copy_that_is_not_used_are_not_told(self) -> None:
        policy = Policy.google_today()
        good = first_entry(answered(), policy=policy)
        entry = next_entry(good, failed(), now=NOW + DAY, policy=policy)

        found = answer(entry, PUBLIC, now=NOW + DAY, policy=policy)

        assert not found.allowed
        assert not found.is_stale
        assert found.fetched_at is None
        assert found.fresh_until == entry.next_fetch_at

    def test_broken_redirect_tells_what_is_wrong_with_it(self) -> None:
        entry = first_entry(broken_redirect("a redirect loop"))

        found = answer(entry, PUBLIC, now=NOW, policy=Policy())

        assert found.allowed
        assert found.error == "a redirect loop"
        assert found.status == 302
        assert found.fetched_at == NOW


def test_ruling_is_frozen() -> None:
    found = Ruling(effect=Effect.ALLOW, until=math.inf)

    with pytest.raises(dataclasses.FrozenInstanceError):
        found.effect = Effect.DISALLOW  # type: ignore[misc]  # what must not work
