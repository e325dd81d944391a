"""An origin's entry after a fetch: the last answer and the outage since then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._entry import entry_meanwhile, unpack
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit, Policy
from tests.tables import cases

from .builders import (
    DAY,
    HOPS,
    HOUR,
    MINUTE,
    NOW,
    ORIGIN,
    RULES,
    answer,
    answered,
    attempt,
    attempts,
    entry,
    failed,
    no_evidence,
    outage,
    too_many_redirects,
)

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Entry, Outage

JITTER = 65.98034936981276 / 60
"""The jitter of `ORIGIN`, whose CRC-32 is 0.9967… of 2^32."""

COPY = answer()
REFUSAL = failed(FailureKind.ADDRESS_REFUSED)
MISSING_PAGE = answered(500, body=b"<title>Not found</title>")


def answer_of(known: Entry) -> Answer:
    assert known.answer is not None
    return known.answer


def outage_of(known: Entry) -> Outage:
    assert known.outage is not None
    return known.outage


# --- answers -----------------------------------------------------------------------


def test_file_is_cached_for_its_freshness_lifetime() -> None:
    outcome = Outcome(
        status=203,
        headers={"cache-control": "max-age=7200"},
        body=RULES,
        redirects=HOPS,
    )

    known = attempt(None, outcome)

    last = answer_of(known)
    assert known == entry(last)
    assert last.packed is not None
    assert unpack(last.packed) == RULES
    assert last == answer(
        packed=last.packed, fresh_until=NOW + 7_200, status=203, redirects=HOPS
    )


@cases("body kept", {
    "empty": (b"", b""),
    "as long as allowed": (b"Disallow: /\n", b"Disallow: /\n"),
    "longer": (b"Disallow: /\nAllow: /\n", b"Disallow: /\nA"),
})  # fmt: skip
def test_body_is_cut_one_byte_after_the_limit(body: bytes, kept: bytes) -> None:
    known = attempt(None, answered(body=body), policy=Policy(max_body_bytes=12))

    packed = answer_of(known).packed
    assert packed is not None
    assert unpack(packed) == kept


@cases("outcome policy expected", {
    "unavailable": (answered(404, cache_control="max-age=7200"), Policy(),
        answer(AccessResult.UNAVAILABLE, fresh_until=NOW + 7_200, status=404)),
    "restricted":
        (answered(403), Policy.strict(), answer(AccessResult.RESTRICTED, status=403)),
    "too many redirects": (too_many_redirects(301, cache_control="max-age=7200"),
        Policy(), answer(AccessResult.UNAVAILABLE, fresh_until=NOW + 7_200, status=301,
        redirects=HOPS, error="a sixth redirect")),
    "refused by the guard": (REFUSAL, Policy(retry_max=100),
        answer(AccessResult.REFUSED, fresh_until=NOW + 100 * JITTER,
        error=REFUSAL.error)),
})  # fmt: skip
def test_answer_replaces_the_whole_entry(
    outcome: Outcome, policy: Policy, expected: Answer
) -> None:
    first = attempt(None, outcome, policy=policy)
    copy = replace(COPY, answered_at=NOW - DAY)
    later = attempt(entry(copy, outage(NOW - DAY)), outcome, policy=policy)

    assert answer_of(first) == answer_of(later) == expected
    assert first.outage is later.outage is None


def test_entry_has_the_policys_terms() -> None:
    policy = Policy(max_redirects=3)

    assert attempt(None, answered(), policy=policy).terms == "redirects=3"
    assert attempt(None, failed(), policy=policy).terms == "redirects=3"


def test_long_error_is_truncated() -> None:
    known = attempt(None, Outcome(failure=FailureKind.PROTOCOL, error="x" * 100_000))

    assert outage_of(known).error == "x" * 300 + "…"


@cases("known now access", {
    "nothing": (None, NOW, AccessResult.UNAVAILABLE),
    "no file": (entry(answer(AccessResult.RESTRICTED)), NOW, AccessResult.UNAVAILABLE),
    "a file": (entry(COPY), NOW + DAY, AccessResult.UNREACHABLE),
    "an expired file":
        (entry(COPY), NOW + 31 * DAY, AccessResult.UNAVAILABLE),
})  # fmt: skip
def test_not_found_page_is_unavailable_unless_there_is_a_usable_copy(
    known: Entry | None, now: float, access: AccessResult
) -> None:
    assert attempt(known, MISSING_PAGE, now=now).access is access


# --- failures ----------------------------------------------------------------------


@cases("outcome expected", {
    "a status": (Outcome(status=500, redirects=HOPS, error="no Location"),
        outage(NOW, redirects=HOPS, error="no Location")),
    "no response": (failed(FailureKind.TIMEOUT), no_evidence(NOW, status=None,
        failure=FailureKind.TIMEOUT, error="failed: timeout")),
})  # fmt: skip
@pytest.mark.parametrize("last", [None, COPY], ids=["nothing", "a copy"])
def test_first_failure_begins_an_outage(
    last: Answer | None, outcome: Outcome, expected: Outage
) -> None:
    known = attempt(None if last is None else entry(last), outcome)

    assert known == entry(last, replace(expected, retry_at=NOW + MINUTE * JITTER))


def test_failure_after_an_expired_404_keeps_the_404() -> None:
    """An earlier copy may still be in a store that missed the 404."""
    missing = answer(AccessResult.UNAVAILABLE)

    known = attempt(entry(missing), answered(500), now=NOW + 2 * DAY)

    stale = replace(missing, fresh_until=0.0)
    assert known == entry(stale, outage_of(known))


def test_further_failure_continues_the_outage() -> None:
    first = attempt(entry(COPY), answered(500))

    second = attempt(first, failed(), now=NOW + HOUR)

    assert second.answer is COPY
    assert outage_of(second) == replace(
        outage_of(first),
        last_attempt_at=NOW + HOUR,
        retry_at=NOW + HOUR + 2 * MINUTE * JITTER,
        attempts=2,
        failure=FailureKind.CONNECT,
        status=None,
        error="failed: connect",
    )


NETWORK_COUNTS = [AfterUnreachableLimit.ALLOW, AfterUnreachableLimit.LAST_COPY]


@pytest.mark.parametrize("after_limit", AfterUnreachableLimit)
@cases("outcome choices", {
    "500": (answered(500), [*AfterUnreachableLimit]),
    "304": (answered(304), [*AfterUnreachableLimit]),
    "429": (answered(429), []),
    "407": (answered(407), []),
    "network failure": (failed(), NETWORK_COUNTS),
})  # fmt: skip
def test_policy_decides_whether_network_failures_are_evidence(
    outcome: Outcome,
    choices: list[AfterUnreachableLimit],
    after_limit: AfterUnreachableLimit,
) -> None:
    policy = Policy(after_unreachable_limit=after_limit)

    since = outage_of(attempt(None, outcome, policy=policy))

    expected = (NOW, NOW, 1) if after_limit in choices else (None, None, 0)
    assert (since.evidence_since, since.last_evidence_at, since.days) == expected


MIDNIGHT = NOW + 16 * HOUR


@cases("times days", {
    "one day": ([NOW, NOW + HOUR, MIDNIGHT - 1], 1),
    "across midnight": ([MIDNIGHT - 1, MIDNIGHT], 2),
    "three days": ([NOW, NOW + DAY, NOW + 2 * DAY + HOUR], 3),
    "far apart": ([NOW, NOW + 20 * DAY], 2),
})  # fmt: skip
def test_days_of_evidence_are_counted_in_utc(times: list[float], days: int) -> None:
    known = attempts(*((time, answered(500)) for time in times))

    assert outage_of(known).days == days


@cases("policy gap", {
    "as long as the span": (Policy(), 30 * DAY),
    "at least two days": (Policy(unreachable_limit=DAY, stale_window=0), 2 * DAY),
})  # fmt: skip
def test_failure_long_after_the_retry_begins_a_new_outage(
    policy: Policy, gap: float
) -> None:
    last = answer(fresh_until=NOW + 90 * DAY)  # keeps the entry usable
    first = entry(last, outage(NOW, attempts=7))

    within = attempt(first, answered(500), now=NOW + MINUTE + gap, policy=policy)
    beyond = attempt(first, answered(500), now=NOW + MINUTE + gap + 1, policy=policy)

    assert (outage_of(within).since, outage_of(within).attempts) == (NOW, 8)
    since = NOW + MINUTE + gap + 1
    assert outage_of(beyond) == outage(since, retry_at=since + MINUTE * JITTER)


def test_evidence_long_after_the_last_starts_over() -> None:
    """The attempts in between were not evidence against the origin."""
    first = entry(
        None,
        outage(NOW, last_attempt_at=NOW + 29 * DAY, retry_at=NOW + 29 * DAY, days=3),
    )

    within = outage_of(attempt(first, answered(500), now=NOW + 30 * DAY))
    beyond = outage_of(attempt(first, answered(500), now=NOW + 30 * DAY + 1))

    assert (within.since, within.evidence_since, within.days) == (NOW, NOW, 4)
    assert (beyond.since, beyond.evidence_since) == (NOW, NOW + 30 * DAY + 1)
    assert beyond.days == 1


@cases("attempts_before outcome delay", {
    "our delay alone": (0, answered(500), MINUTE * JITTER),
    "our delay after a 503": (0, answered(503), 30 * JITTER),
    "max-age ignored": (0, answered(500, cache_control="max-age=9"), MINUTE * JITTER),
    "Retry-After is longer": (0, answered(429, retry_after="600"), 600),
    "the longest of several": (0, answered(503, retry_after="600, 900"), 900),
    "our delay is longer": (4, answered(500, retry_after="600"), 960 * JITTER),
    "Retry-After of 0": (0, answered(500, retry_after="0"), MINUTE * JITTER),
    "a date in the past": (0,
        answered(500, retry_after="Fri, 15 Jan 2027 07:00:00 GMT"), MINUTE * JITTER),
    "at most an hour": (50, answered(500), HOUR * JITTER),
    "Retry-After of at most a day": (50, answered(500, retry_after="999999"), DAY),
    "Retry-After of a redirect": (0, too_many_redirects(302, retry_after="600"), 600),
})  # fmt: skip
def test_retry_waits_for_the_longer_of_retry_after_and_our_delay(
    attempts_before: int, outcome: Outcome, delay: float
) -> None:
    policy = Policy(
        on_too_many_redirects=AccessResult.UNREACHABLE, detect_missing_page=False
    )
    known = None
    if attempts_before:
        known = entry(None, outage(NOW - HOUR, attempts=attempts_before))

    later = attempt(known, outcome, policy=policy)

    assert outage_of(later).retry_at == pytest.approx(NOW + delay)


@cases("policy outcome lifetime retry_at", {
    "longer than the lifetime":
        (Policy.rfc9309(), answered(429, retry_after="7200", cache_control="no-store"),
        7_200, 7_200),
    "shorter than the lifetime":
        (Policy.rfc9309(), answered(429, retry_after="120"), DAY, 120),
    "longer than max_lifetime":
        (Policy(on_too_many_requests=AccessResult.RESTRICTED, max_lifetime=HOUR),
        answered(429, retry_after="86400", cache_control="max-age=60"), DAY, DAY),
    "at most retry_after_max":
        (Policy.rfc9309(), answered(429, retry_after="999999"), DAY, DAY),
    "none": (Policy.rfc9309(), answered(429), DAY, None),
    "on another status": (Policy(), answered(404, retry_after="999999"), DAY, None),
})  # fmt: skip
def test_retry_after_of_a_429_extends_the_freshness_lifetime(
    policy: Policy, outcome: Outcome, lifetime: float, retry_at: float | None
) -> None:
    """RFC 6585 §4. With no-store, the next fetch used to come after a minute."""
    last = answer_of(attempt(None, outcome, policy=policy))

    assert last.fresh_until == NOW + lifetime
    assert last.retry_at == (None if retry_at is None else NOW + retry_at)


# --- our own machine cannot fetch --------------------------------------------------


def meanwhile(known: Entry | None, *, until: float) -> Outage:
    after = entry_meanwhile(
        known,
        failed(FailureKind.LOCAL),
        origin=ORIGIN,
        now=NOW + HOUR,
        retry_at=until,
        policy=Policy(),
    )
    return outage_of(after)


def test_own_failure_during_an_outage_only_postpones_the_retry() -> None:
    known = attempt(None, answered(500))

    later = meanwhile(known, until=NOW + HOUR + 5)

    assert later == replace(
        outage_of(known),
        retry_at=NOW + HOUR + 5,
        failure=FailureKind.LOCAL,
        error="failed: local",
    )


def test_own_failure_does_not_bring_the_retry_forward() -> None:
    """A refresh that never left our machine used to cut short a Retry-After."""
    known = attempt(None, answered(503, retry_after="86400"))

    assert meanwhile(known, until=NOW + HOUR + 5).retry_at == NOW + DAY


# --- updates during the fetch ------------------------------------------------------


def test_failure_changes_nothing_if_a_fresh_answer_arrived_meanwhile() -> None:
    known = entry(COPY, outage(NOW + 1))

    assert attempt(known, answered(500), began_at=NOW - 1, now=NOW + 2) is known


@cases("known began_at now", {
    "it arrived before": (COPY, NOW, NOW + 1),
    "it is no longer fresh": (answer(fresh_until=NOW), NOW - 1, NOW + 1),
    "its date is an hour ahead":
        (answer(answered_at=NOW + HOUR), NOW - 1, NOW),
})  # fmt: skip
def test_failure_begins_an_outage_unless_a_fresh_answer_arrived_meanwhile(
    known: Answer, began_at: float, now: float
) -> None:
    later = attempt(entry(known), answered(500), began_at=began_at, now=now)

    assert later.answer is known
    assert outage_of(later).since == now


def test_later_of_two_answers_wins() -> None:
    """Two concurrent fetches; the first to start ends last, perhaps by a slow clock."""
    known = entry(answer(AccessResult.UNAVAILABLE, answered_at=NOW + MINUTE))

    overtaken = attempt(known, answered(), began_at=NOW - 1, now=NOW)
    latest = attempt(known, answered(), began_at=NOW - 1, now=NOW + 2 * MINUTE)

    assert overtaken is known
    assert latest.access is AccessResult.SUCCESSFUL


def test_next_answer_counts_as_later_even_if_the_clock_is_behind() -> None:
    known = entry(answer(AccessResult.UNAVAILABLE, answered_at=NOW + MINUTE))

    later = attempt(known, answered(), began_at=NOW + MINUTE, now=NOW)

    assert later.access is AccessResult.SUCCESSFUL
    assert answer_of(later).answered_at > NOW + MINUTE


def test_answer_replaces_one_dated_far_ahead() -> None:
    known = entry(answer(AccessResult.UNAVAILABLE, answered_at=NOW + HOUR))

    assert attempt(known, answered()).access is AccessResult.SUCCESSFUL


def test_outage_dated_far_ahead_is_dropped() -> None:
    known = entry(COPY, outage(NOW + HOUR, attempts=9))

    later = attempt(known, answered(500))

    assert outage_of(later) == outage(NOW, retry_at=NOW + MINUTE * JITTER)
