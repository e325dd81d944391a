"""What applies to an origin in each phase, and until when (RFC 9309 §2.3.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from robotsgate.caching._entry import Answer, Outage
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit, Policy
from robotsgate.caching._verdict import Effect, InForce, Reason, in_force
from tests.tables import cases

from .builders import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    PRESETS,
    answer,
    entry,
    no_evidence,
    outage,
)

COPY = answer()
UNAVAILABLE = answer(AccessResult.UNAVAILABLE)
RESTRICTED = answer(AccessResult.RESTRICTED)
REFUSED = answer(AccessResult.REFUSED)

RULES, ALLOW, DISALLOW, REFUSE = Effect
TOO_LONG = Reason.UNREACHABLE_TOO_LONG

START = NOW + DAY
"""When the outage begins: at the end of the answer's lifetime."""


def effect_and_reason(
    last: Answer | None, since: Outage | None, *, now: float, policy: Policy
) -> tuple[Effect, Reason | None]:
    """What applies during an outage, and why."""
    result = in_force(entry(last, since), now=now, policy=policy)
    assert result.is_outage
    return result.effect, result.reason


def still_failing(now: float, **fields: object) -> Outage:
    """An outage since `START` with evidence on every day, the last at `now`."""
    usual: dict[str, object] = {
        "last_attempt_at": now,
        "last_evidence_at": now,
        "retry_at": now + HOUR,
        "days": 1 + int((now - START) // DAY),
    }
    return outage(START, **(usual | fields))


@pytest.mark.parametrize(
    ("last", "effect", "reason"),
    [
        (COPY, RULES, None),
        (UNAVAILABLE, ALLOW, Reason.UNAVAILABLE),
        (RESTRICTED, DISALLOW, Reason.RESTRICTED),
        (REFUSED, REFUSE, Reason.ADDRESS_REFUSED),
    ],
    ids=lambda value: value.access.name if isinstance(value, Answer) else "",
)
def test_answer_applies_without_an_outage_and_while_it_is_fresh(
    last: Answer, effect: Effect, reason: Reason | None
) -> None:
    """Even if an early refresh has failed."""
    expected = InForce(effect=effect, reason=reason, until=NOW + DAY)

    alone = in_force(entry(last), now=NOW, policy=Policy())
    refreshed = in_force(entry(last, outage(NOW)), now=NOW + 1, policy=Policy())

    assert alone == expected
    assert refreshed == replace(expected, until=NOW + MINUTE)


def test_fresh_answer_expires_even_before_the_retry_of_a_refresh() -> None:
    known = entry(COPY, outage(NOW, retry_at=NOW + 2 * DAY))

    assert in_force(known, now=NOW + 1, policy=Policy()).until == NOW + DAY


def test_answer_dated_far_ahead_is_not_fresh() -> None:
    """Its body may still be used as a copy."""
    ahead = answer(answered_at=NOW + HOUR)

    known = entry(ahead, outage(NOW, retry_at=NOW + DAY))

    result = in_force(known, now=NOW, policy=Policy())

    assert (result.effect, result.is_outage) == (RULES, True)
    assert result.until == NOW + 55 * MINUTE  # from then on it is not ahead


# Seconds since the start of an outage with evidence on every day, and what then
# applies with a copy, and without any answer.
Phase = tuple[float, Effect, Effect]
PHASES: dict[str, list[Phase]] = {
    "default": [(0, RULES, DISALLOW), (30 * DAY - 1, RULES, DISALLOW),
        (30 * DAY, ALLOW, ALLOW), (90 * DAY, ALLOW, ALLOW)],
    "google_today": [(0, DISALLOW, DISALLOW), (12 * HOUR - 1, DISALLOW, DISALLOW),
        (12 * HOUR, RULES, ALLOW), (30 * DAY - 1, RULES, ALLOW),
        (30 * DAY, ALLOW, ALLOW)],
    "google_2021": [(0, DISALLOW, DISALLOW), (30 * DAY - 1, DISALLOW, DISALLOW),
        (30 * DAY, RULES, ALLOW), (900 * DAY, RULES, ALLOW)],
    "rfc9309": [(0, DISALLOW, DISALLOW), (30 * DAY - 1, DISALLOW, DISALLOW),
        (30 * DAY, RULES, ALLOW)],
    "strict": [(0, RULES, DISALLOW), (30 * DAY - 1, RULES, DISALLOW),
        (30 * DAY, DISALLOW, DISALLOW), (900 * DAY, DISALLOW, DISALLOW)],
}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_preset_goes_through_its_phases(preset: str) -> None:
    for seconds, with_copy, without in PHASES[preset]:
        now = START + seconds
        since = still_failing(now)
        for last, effect in ((COPY, with_copy), (None, without)):
            result = in_force(entry(last, since), now=now, policy=PRESETS[preset])

            assert (seconds, last, result.effect) == (seconds, last, effect)


OPEN = still_failing(START + 31 * DAY)
"""The default policy then allows all but RESTRICTED and REFUSED origins."""


@cases("last since expected", {
    "nothing known": (None, OPEN, (ALLOW, TOO_LONG)),
    "no file": (UNAVAILABLE, OPEN, (ALLOW, TOO_LONG)),
    "a copy": (COPY, OPEN, (ALLOW, TOO_LONG)),
    "restricted": (RESTRICTED, OPEN, (DISALLOW, TOO_LONG)),
    "refused": (REFUSED, OPEN, (REFUSE, TOO_LONG)),
    "refused, before the limit":
        (REFUSED, outage(START + 3 * DAY), (REFUSE, Reason.UNREACHABLE)),
    "the last attempt was not evidence":
        (None, replace(OPEN, last_attempt_at=START + 32 * DAY), (DISALLOW, TOO_LONG)),
    "no evidence since the limit":
        (None, replace(OPEN, last_attempt_at=START + 30 * DAY - 1,
        last_evidence_at=START + 30 * DAY - 1), (DISALLOW, TOO_LONG)),
    "an answer dated far ahead, which is never fresh":
        (answer(AccessResult.UNAVAILABLE, answered_at=START + 33 * DAY,
        fresh_until=START + 99 * DAY), OPEN, (ALLOW, TOO_LONG)),
    "evidence on five days": (None, replace(OPEN, days=5), (ALLOW, TOO_LONG)),
    "evidence on four days": (None, replace(OPEN, days=4), (DISALLOW, TOO_LONG)),
    "the limit counts from the first evidence": (None,
        replace(OPEN, evidence_since=START + 3 * DAY), (DISALLOW, Reason.UNREACHABLE)),
    "no evidence at all": (None, no_evidence(START, last_attempt_at=START + 31 * DAY),
        (DISALLOW, Reason.UNREACHABLE)),
})  # fmt: skip
def test_origin_opens_only_on_evidence(
    last: Answer | None, since: Outage, expected: tuple[Effect, Reason]
) -> None:
    now = START + 32 * DAY

    assert effect_and_reason(last, since, now=now, policy=Policy()) == expected


@cases("last_at effect", {
    "an early refresh": (NOW + 59 * DAY, DISALLOW),
    "a fetch after it expired": (NOW + 60 * DAY, ALLOW),
})  # fmt: skip
def test_origin_opens_only_after_its_answer_has_expired(
    last_at: float, effect: Effect
) -> None:
    """A freshness lifetime may be longer than the limit."""
    last = answer(fresh_until=NOW + 60 * DAY)
    since = outage(
        NOW + DAY, last_attempt_at=last_at, last_evidence_at=last_at, days=59
    )

    result = effect_and_reason(last, since, now=NOW + 60 * DAY, policy=Policy())

    assert result == (effect, TOO_LONG)


@pytest.mark.parametrize(("limit_days", "days_of_evidence", "needed"), [
    (0, 5, 1), (0.5, 5, 1), (1, 5, 1), (1.5, 5, 2), (3, 5, 3), (30, 5, 5), (30, 1, 1),
])  # fmt: skip
def test_short_limit_needs_evidence_on_fewer_days(
    limit_days: float, days_of_evidence: int, needed: int
) -> None:
    policy = Policy(
        unreachable_limit=limit_days * DAY, days_of_evidence=days_of_evidence
    )

    effects = {
        days: effect_and_reason(
            None, replace(OPEN, days=days), now=START + 31 * DAY, policy=policy
        )[0]
        for days in (needed - 1, needed)
    }

    assert effects == {needed - 1: DISALLOW, needed: ALLOW}


@pytest.mark.parametrize(("after_limit", "with_copy", "without"), [
    (AfterUnreachableLimit.ALLOW_IF_ANSWERING, ALLOW, ALLOW),
    (AfterUnreachableLimit.ALLOW, ALLOW, ALLOW),
    (AfterUnreachableLimit.LAST_COPY, RULES, ALLOW),
    (AfterUnreachableLimit.DISALLOW, DISALLOW, DISALLOW),
])  # fmt: skip
def test_policy_sets_what_applies_after_the_limit(
    after_limit: AfterUnreachableLimit, with_copy: Effect, without: Effect
) -> None:
    policy = Policy(after_unreachable_limit=after_limit)
    now = START + 31 * DAY

    assert effect_and_reason(COPY, OPEN, now=now, policy=policy)[0] is with_copy
    assert effect_and_reason(None, OPEN, now=now, policy=policy)[0] is without


@cases("policy last since now effect", {
    "none": (Policy(stale_window=0), COPY, outage(START), START, DISALLOW),
    "shorter than the limit: closed in between": (Policy(stale_window=DAY), COPY,
        still_failing(START + DAY), START + DAY, DISALLOW),
    "longer than the limit: still the copy": (Policy(stale_window=40 * DAY), COPY,
        still_failing(START + 40 * DAY - 1), START + 40 * DAY - 1, RULES),
    "longer than the limit: opens after it": (Policy(stale_window=40 * DAY), COPY,
        still_failing(START + 40 * DAY), START + 40 * DAY, ALLOW),
    "a grace longer than both": (Policy(outage_grace=40 * DAY), COPY,
        still_failing(START + 39 * DAY), START + 39 * DAY, DISALLOW),
    "an outage that begins within the copy's window":
        (Policy(), COPY, outage(START + 30 * DAY - 1), START + 30 * DAY - 1, RULES),
    "an outage that begins after the window":
        (Policy(), COPY, outage(START + 30 * DAY), START + 30 * DAY, DISALLOW),
})  # fmt: skip
def test_copy_is_used_within_the_stale_window(
    policy: Policy, last: Answer, since: Outage, now: float, effect: Effect
) -> None:
    assert effect_and_reason(last, since, now=now, policy=policy)[0] is effect


@cases("policy last since now until", {
    "the retry": (Policy(), COPY, outage(START), START, START + MINUTE),
    "the grace": (Policy(outage_grace=HOUR), COPY, {}, START, START + HOUR),
    "the stale window, after the grace": (Policy(outage_grace=HOUR,
        stale_window=2 * HOUR), COPY, {}, START + HOUR, START + 2 * HOUR),
    "the limit": (Policy(unreachable_limit=HOUR), None, {}, START, START + HOUR),
    "the retry, if there is no evidence": (Policy(unreachable_limit=HOUR), None,
        {"evidence_since": None}, START, START + DAY),
})  # fmt: skip
def test_decision_is_valid_until_its_phase_ends_or_the_retry(
    policy: Policy,
    last: Answer | None,
    since: Outage | dict[str, object],
    now: float,
    until: float,
) -> None:
    if isinstance(since, dict):
        since = outage(START, **({"retry_at": START + DAY} | since))

    assert in_force(entry(last, since), now=now, policy=policy).until == until
