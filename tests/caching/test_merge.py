"""Merging two processes' entries, in any order."""

from __future__ import annotations

from itertools import permutations

from hypothesis import assume, given
from hypothesis import strategies as st

from robotsgate.caching._entry import Answer, Entry, Outage, PackedBody, merge, usable
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit, Policy
from robotsgate.caching._verdict import Effect, in_force
from tests.tables import cases

from .builders import (
    DAY,
    HOPS,
    HOUR,
    MINUTE,
    NOW,
    ORIGIN,
    PRESETS,
    answer,
    entry,
    outage,
)

POLICIES = [
    *PRESETS.values(),
    Policy(stale_window=0.0, after_unreachable_limit=AfterUnreachableLimit.ALLOW),
    Policy(unreachable_limit=DAY, stale_window=40 * DAY, outage_grace=3 * DAY),
]

# Few values, so that equal ones meet; some are ahead of the clock.
spans = st.sampled_from([0.0, 1.0, HOUR, DAY, 29 * DAY, 45 * DAY])
times = st.builds(
    lambda base, more: NOW + base + more,
    st.sampled_from([-40 * DAY, -2 * DAY, -HOUR, 0.0, 100.0, 400.0, DAY]),
    st.sampled_from([0.0, 1.0]),
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Any answer; it has a body if it is successful."""
    access = draw(
        st.sampled_from(
            [
                AccessResult.SUCCESSFUL,
                AccessResult.UNAVAILABLE,
                AccessResult.RESTRICTED,
                AccessResult.REFUSED,
            ]
        )
    )
    is_good = access is AccessResult.SUCCESSFUL
    answered_at = draw(times)
    return Answer(
        access=access,
        answered_at=answered_at,
        fresh_until=answered_at + draw(spans),
        status=draw(st.sampled_from([200, 204] if is_good else [None, 403, 404])),
        redirects=draw(st.sampled_from([(), HOPS])),
        error=None if is_good else draw(st.sampled_from([None, "an error"])),
        packed=PackedBody(draw(st.sampled_from([b"one", b"two"]))) if is_good else None,
    )


@st.composite
def outages(draw: st.DrawFn) -> Outage:
    """Any outage that attempts can cause."""
    attempts = draw(st.integers(1, 9))
    since, first, last, end = sorted(draw(times) for _ in range(4))
    has_evidence = draw(st.booleans())
    return Outage(
        since=since,
        last_attempt_at=end,
        retry_at=end + draw(spans),
        attempts=attempts,
        evidence_since=first if has_evidence else None,
        last_evidence_at=last if has_evidence else None,
        days=draw(st.integers(1, attempts)) if has_evidence else 0,
        failure=draw(st.sampled_from([None, FailureKind.CONNECT, FailureKind.TLS])),
        status=draw(st.sampled_from([None, 429, 500])),
        redirects=draw(st.sampled_from([(), HOPS])),
        error=draw(st.sampled_from([None, "an error"])),
    )


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Any entry; many have one of a few answers, so that their outages are merged."""
    answer = draw(st.none() | st.sampled_from(_FEW_ANSWERS) | answers())
    outage = draw(outages() if answer is None else st.none() | outages())
    return Entry(origin=ORIGIN, terms="", answer=answer, outage=outage)


_FEW_ANSWERS = [
    Answer(
        access=access,
        answered_at=NOW - 10 * DAY,
        fresh_until=NOW - 9 * DAY,
        status=200 if body else 404,
        error=None,
        packed=body and PackedBody(body),
    )
    for access, body in (
        (AccessResult.SUCCESSFUL, b"rules"),
        (AccessResult.UNAVAILABLE, None),
    )
]


@given(entries(), entries(), entries())
def test_order_of_merging_does_not_matter(a: Entry, b: Entry, c: Entry) -> None:
    results = {
        merge(merge(x, y, now=NOW), z, now=NOW) for x, y, z in permutations((a, b, c))
    }

    assert len(results) == 1
    assert merge(a, merge(b, c, now=NOW), now=NOW) in results


@given(entries(), entries())
def test_merging_again_changes_nothing(a: Entry, b: Entry) -> None:
    both = merge(a, b, now=NOW)

    assert merge(a, a, now=NOW) == a
    assert merge(both, a, now=NOW) == both
    assert merge(both, b, now=NOW) == both
    assert merge(a, None, now=NOW) == a
    assert merge(None, a, now=NOW) == a


@given(entries(), st.sampled_from(POLICIES))
def test_usable_is_idempotent(entry: Entry, policy: Policy) -> None:
    once = usable(entry, now=NOW, policy=policy)

    assert usable(once, now=NOW, policy=policy) == once


@given(entries(), st.sampled_from(POLICIES), st.lists(spans, min_size=2, max_size=8))
def test_elapsed_time_alone_never_opens_an_origin(
    entry: Entry, policy: Policy, steps: list[float]
) -> None:
    """Except with an entry from a fast clock, which may apply from its date on."""
    assume(entry.answer is None or entry.answer.answered_at <= NOW)
    assume(entry.outage is None or entry.outage.last_attempt_at <= NOW)
    now, before = NOW, in_force(entry, now=NOW, policy=policy)
    for step in steps:
        now += step
        after = in_force(entry, now=now, policy=policy)

        if now < before.until:
            assert after.effect is before.effect
        assert after.effect is not Effect.ALLOW or before.effect is Effect.ALLOW
        before = after


@cases("one other together", {
    "the first failure and the higher counts": (
        outage(NOW, attempts=9, days=3), outage(NOW + DAY, attempts=2, days=2),
        outage(NOW, attempts=9, days=3, last_attempt_at=NOW + DAY,
               retry_at=NOW + DAY + MINUTE, last_evidence_at=NOW + DAY)),
})  # fmt: skip
def test_outages_after_the_same_answer_are_merged(
    one: Outage, other: Outage, together: Outage
) -> None:
    last = answer()

    assert merge(entry(last, one), entry(last, other), now=NOW + DAY) == entry(
        last, together
    )


def test_answer_dated_far_ahead_counts_as_the_earlier_one() -> None:
    ahead = entry(answer(answered_at=NOW + HOUR))

    assert merge(ahead, entry(answer()), now=NOW) == entry(answer())


def test_merge_and_usable_return_none_for_no_entry() -> None:
    assert merge(None, None, now=NOW) is None
    assert usable(None, now=NOW, policy=Policy()) is None
