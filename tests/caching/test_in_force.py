"""What is in force for an origin: the phases of an outage in their order, and until
when each is (RFC 9309 §2.3.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from robotsgate.caching._entry import Answer, Outage
from robotsgate.caching._in_force import Effect, InForce, in_force
from robotsgate.caching._outcome import AccessResult
from robotsgate.caching._policy import AfterUnreachableLimit, Policy
from robotsgate.caching._verdict import Reason
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


def standing(
    last: Answer | None, since: Outage | None, *, now: float, policy: Policy
) -> tuple[Effect, Reason | None]:
    """What is in force, and why."""
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
def test_answer_is_in_force_alone_and_while_it_is_fresh(
    last: Answer, effect: Effect, reason: Reason | None
) -> None:
    """Even if an early refresh has failed."""
    expected = InForce(effect=effect, reason=reason, until=NOW + DAY)

    alone = in_force(entry(last), now=NOW, policy=Policy())
    refreshed = in_force(entry(last, outage(NOW)), now=NOW + 1, policy=Policy())

    assert alone == expected
    assert refreshed == replace(expected, until=NOW + MINUTE)
    assert not alone.is_stale


def test_fresh_answer_ends_before_the_retry_of_a_refresh() -> None:
    known = entry(COPY, outage(NOW, retry_at=NOW + 2 * DAY))

    assert in_force(known, now=NOW + 1, policy=Policy()).until == NOW + DAY


def test_answer_that_is_far_ahead_is_not_fresh() -> None:
    """Its body may still serve as a copy."""
    ahead = answer(answered_at=NOW + HOUR)

    known = entry(ahead, outage(NOW, retry_at=NOW + DAY))

    result = in_force(known, now=NOW, policy=Policy())

    assert (result.effect, result.is_stale) == (RULES, True)
    assert result.until == NOW + 55 * MINUTE  # then it is ahead no more


# Seconds since the outage began, while it goes on with evidence on every day, and
# what is then in force with a copy, and without any answer.
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
def test_phases_of_a_preset_follow_each_other(preset: str) -> None:
    for seconds, with_copy, without in PHASES[preset]:
        now = START + seconds
        since = still_failing(now)
        for last, effect in ((COPY, with_copy), (None, without)):
            result = in_force(entry(last, since), now=now, policy=PRESETS[preset])

            assert (seconds, last, result.effect) == (seconds, last, effect)
            assert result.is_stale is (effect is RULES)


OPEN = still_failing(START + 31 * DAY)
"""After it, what is not RESTRICTED or REFUSED is allowed by the default policy."""


@cases("last since expected", {
    "nothing known": (None, OPEN, (ALLOW, TOO_LONG)),
    "no file": (UNAVAILABLE, OPEN, (ALLOW, TOO_LONG)),
    "a copy": (COPY, OPEN, (ALLOW, TOO_LONG)),
    "restricted": (RESTRICTED, OPEN, (DISALLOW, TOO_LONG)),
    "refused": (REFUSED, OPEN, (REFUSE, TOO_LONG)),
    "refused, before the limit":
        (REFUSED, outage(START + 3 * DAY), (REFUSE, Reason.UNREACHABLE)),
    "the last attempt was no evidence":
        (None, replace(OPEN, last_attempt_at=START + 32 * DAY), (DISALLOW, TOO_LONG)),
    "no evidence since the limit":
        (None, replace(OPEN, last_attempt_at=START + 30 * DAY - 1,
        last_evidence_at=START + 30 * DAY - 1), (DISALLOW, TOO_LONG)),
    "an answer far ahead, which is never fresh":
        (answer(AccessResult.UNAVAILABLE, answered_at=START + 33 * DAY,
        fresh_until=START + 99 * DAY), OPEN, (ALLOW, TOO_LONG)),
    "evidence on five days": (None, replace(OPEN, days=5), (ALLOW, TOO_LONG)),
    "on four days": (None, replace(OPEN, days=4), (DISALLOW, TOO_LONG)),
    "the limit counts from the first evidence": (None,
        replace(OPEN, evidence_since=START + 3 * DAY), (DISALLOW, Reason.UNREACHABLE)),
    "no evidence at all": (None, no_evidence(START, last_attempt_at=START + 31 * DAY),
        (DISALLOW, Reason.UNREACHABLE)),
})  # fmt: skip
def test_origin_opens_on_evidence_alone(
    last: Answer | None, since: Outage, expected: tuple[Effect, Reason]
) -> None:
    now = START + 32 * DAY

    assert standing(last, since, now=now, policy=Policy()) == expected


@cases("last_at effect", {
    "an early refresh": (NOW + 59 * DAY, DISALLOW),
    "a fetch of what has expired": (NOW + 60 * DAY, ALLOW),
})  # fmt: skip
def test_origin_opens_only_after_its_answer_has_expired(
    last_at: float, effect: Effect
) -> None:
    """A lifetime may be longer than the limit."""
    last = answer(fresh_until=NOW + 60 * DAY)
    since = outage(
        NOW + DAY, last_attempt_at=last_at, last_evidence_at=last_at, days=59
    )

    now = NOW + 60 * DAY
    assert standing(last, since, now=now, policy=Policy()) == (effect, TOO_LONG)


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
        days: standing(
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
def test_policy_chooses_what_comes_after_the_limit(
    after_limit: AfterUnreachableLimit, with_copy: Effect, without: Effect
) -> None:
    policy = Policy(after_unreachable_limit=after_limit)
    now = START + 31 * DAY

    assert standing(COPY, OPEN, now=now, policy=policy)[0] is with_copy
    assert standing(None, OPEN, now=now, policy=policy)[0] is without


@cases("policy last since now effect", {
    "none": (Policy(stale_window=0), COPY, outage(START), START, DISALLOW),
    "shorter than the limit: closed in between": (Policy(stale_window=DAY), COPY,
        still_failing(START + DAY), START + DAY, DISALLOW),
    "longer than the limit: the copy goes on": (Policy(stale_window=40 * DAY), COPY,
        still_failing(START + 40 * DAY - 1), START + 40 * DAY - 1, RULES),
    "longer than the limit: opens after it": (Policy(stale_window=40 * DAY), COPY,
        still_failing(START + 40 * DAY), START + 40 * DAY, ALLOW),
    "a grace that is longer than all": (Policy(outage_grace=40 * DAY), COPY,
        still_failing(START + 39 * DAY), START + 39 * DAY, DISALLOW),
    "an outage that begins within the window of the copy":
        (Policy(), COPY, outage(START + 30 * DAY - 1), START + 30 * DAY - 1, RULES),
    "an outage that begins after it":
        (Policy(), COPY, outage(START + 30 * DAY), START + 30 * DAY, DISALLOW),
})  # fmt: skip
def test_copy_is_used_within_the_stale_window(
    policy: Policy, last: Answer, since: Outage, now: float, effect: Effect
) -> None:
    assert standing(last, since, now=now, policy=policy)[0] is effect


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("last", "seconds", "effect"), [
    (COPY, 0, RULES), (COPY, 30 * DAY - 1, RULES), (COPY, 30 * DAY, DISALLOW),
    (UNAVAILABLE, 0, DISALLOW), (REFUSED, 0, REFUSE), (None, 0, DISALLOW),
])  # fmt: skip
def test_before_the_outage_has_begun_the_copy_is_used_within_its_window(
    preset: str, last: Answer | None, seconds: float, effect: Effect
) -> None:
    since = no_evidence(START, attempts=0)
    now = START + seconds

    assert standing(last, since, now=now, policy=PRESETS[preset])[0] is effect


@cases("policy last since now until", {
    "the retry": (Policy(), COPY, outage(START), START, START + MINUTE),
    "the grace": (Policy(outage_grace=HOUR), COPY, {}, START, START + HOUR),
    "the stale window, after the grace": (Policy(outage_grace=HOUR,
        stale_window=2 * HOUR), COPY, {}, START + HOUR, START + 2 * HOUR),
    "the window of the answer": (Policy(stale_window=12 * HOUR), COPY, {"attempts": 0},
        START + HOUR, START + 12 * HOUR),
    "the limit": (Policy(unreachable_limit=HOUR), None, {}, START, START + HOUR),
    "no limit without evidence": (Policy(unreachable_limit=HOUR), None,
        {"evidence_since": None}, START, START + DAY),
})  # fmt: skip
def test_standing_ends_with_its_phase_or_at_the_retry(
    policy: Policy,
    last: Answer | None,
    since: Outage | dict[str, object],
    now: float,
    until: float,
) -> None:
    if isinstance(since, dict):
        since = outage(START, **({"retry_at": START + DAY} | since))

    assert in_force(entry(last, since), now=now, policy=policy).until == until
