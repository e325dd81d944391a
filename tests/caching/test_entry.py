"""What is known about one origin: which part is valid, for how long, and merging."""

from __future__ import annotations

import dataclasses
import math
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from robotsgate.caching._entry import (
    Answer,
    BackOff,
    Entry,
    Outage,
    Packed,
    current_until_for,
    keep_until,
    key_of,
    limit,
    longest_gap,
    merge,
    pack,
    span,
    unpack,
    unpack_within,
    usable,
)
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
    RULES,
    answer,
    answered,
    attempt,
    entry,
    no_evidence,
    outage,
)

SKEW = 5 * MINUTE
COPY = answer()
MISSING = answer(AccessResult.UNAVAILABLE)
RESTRICTED = answer(AccessResult.RESTRICTED)
REFUSED = answer(AccessResult.REFUSED)
FAILING = outage(NOW + DAY)


@pytest.mark.parametrize("body", [
    b"", RULES, bytes(range(256)) * 8, b"\xef\xbb\xbf\x00\xff\r\n",
], ids=["an empty file", "a typical file", "every byte value", "garbage"])  # fmt: skip
def test_compressed_body_is_restored_exactly(body: bytes) -> None:
    last = attempt(None, answered(body=body)).answer

    assert last is not None
    assert last.packed is not None
    assert unpack(last.packed) == body
    assert unpack_within(last.packed, max(len(body), 1)) == body


@pytest.mark.parametrize("size", [65_536, 65_537])
def test_body_is_compressed_fast_and_decompressed_up_to_a_limit(size: int) -> None:
    """This blocks the event loop. The second byte is zlib's compression level."""
    packed = pack(b"x" * size)

    assert packed[1:2] == b"\x01"
    assert unpack_within(packed, 65_536) == (b"x" * size if size <= 65_536 else None)


def test_body_is_not_shown() -> None:
    """An answer may appear in a log."""
    assert "packed" not in repr(answer())


@pytest.mark.parametrize(("access", "packed"), [
    (AccessResult.SUCCESSFUL, None), (AccessResult.UNAVAILABLE, Packed(b"")),
    (AccessResult.RESTRICTED, Packed(b"x")),
    (AccessResult.REFUSED, Packed(b"x")), (AccessResult.UNREACHABLE, None),
    (AccessResult.UNREACHABLE, Packed(b"x")),
])  # fmt: skip
def test_answer_must_have_a_body_if_and_only_if_successful(
    access: AccessResult, packed: Packed | None
) -> None:
    """An empty file would allow everything."""
    with pytest.raises(ValueError, match="expected"):
        answer(access, packed=packed)


def test_empty_entry_is_refused() -> None:
    with pytest.raises(ValueError, match=f"an answer or an outage for '{ORIGIN}'"):
        Entry(origin=ORIGIN)


@cases("known access checked_at next_fetch_at", {
    "no file": (entry(MISSING), AccessResult.UNAVAILABLE, NOW, NOW + DAY),
    "a file": (entry(answer()), AccessResult.SUCCESSFUL, NOW, NOW + DAY),
    "an outage after an answer": (entry(MISSING, FAILING), AccessResult.UNREACHABLE,
        NOW + DAY, NOW + DAY + MINUTE),
    "an outage alone":
        (entry(None, FAILING), AccessResult.UNREACHABLE, NOW + DAY, NOW + DAY + MINUTE),
})  # fmt: skip
def test_properties_of_an_entry_describe_the_latest_fetch(
    known: Entry, access: AccessResult, checked_at: float, next_fetch_at: float
) -> None:
    assert known.access is access
    assert known.checked_at == checked_at
    assert known.next_fetch_at == next_fetch_at


@pytest.mark.parametrize("known", [entry(MISSING), entry(MISSING, outage(NOW))])
def test_entry_is_current_from_five_minutes_early_to_the_next_fetch(
    known: Entry,
) -> None:
    start, end = NOW - SKEW, known.next_fetch_at

    assert known.is_current(start)
    assert not known.is_current(math.nextafter(start, 0))
    assert known.is_current(math.nextafter(end, 0))
    assert not known.is_current(end)


RETRY = NOW + MINUTE
STALE = answer(fresh_until=NOW - DAY)
NO_RESPONSE = {
    "no connection": no_evidence(NOW, status=None, failure=FailureKind.CONNECT),
    "407": no_evidence(NOW, status=407),
}


@pytest.mark.parametrize("failure", NO_RESPONSE.values(), ids=NO_RESPONSE)
@cases("last own current_from current_until", {
    "a checker that has not tried": (STALE, None, 0, 0),
    "without an answer": (None, None, 0, 0),
    "after a fresh answer": (answer(), None, NOW, RETRY),
    "the checker's own attempt": (STALE, BackOff(NOW, RETRY), NOW, RETRY),
    "its own attempt a little earlier":
        (STALE, BackOff(NOW - 20, RETRY - 20), NOW, RETRY - 20),
    "its own attempt a little earlier, with a shorter back-off":
        (STALE, BackOff(NOW - 20, NOW + 10), NOW, NOW + 10),
    "its own attempt a little earlier, in a longer outage":
        (STALE, BackOff(NOW - 20, NOW + HOUR), NOW, RETRY - 20),
    "its own attempt long ago": (STALE, BackOff(NOW - MINUTE, NOW), 0, 0),
    "its own attempt before its clock was set back":
        (STALE, BackOff(NOW + HOUR, NOW + 2 * HOUR), 0, 0),
})  # fmt: skip
def test_failure_without_a_response_is_current_for_its_own_checker_only(
    last: Answer | None,
    own: BackOff | None,
    current_from: float,
    current_until: float,
    failure: Outage,
) -> None:
    known = entry(last, failure)

    for seconds in (0, 9, 10, 39, 40, 59, 60):
        now = NOW + seconds
        expected = current_from <= now < current_until
        assert (now < current_until_for(known, now, own)) is expected


def test_failure_with_a_response_is_current_for_all_checkers() -> None:
    for status in (206, 429, 500, 503):
        known = entry(STALE, outage(NOW, status=status))

        assert current_until_for(known, NOW, None) == RETRY
        assert current_until_for(known, RETRY, None) <= RETRY


def test_answer_is_fresh_from_five_minutes_early_until_it_expires() -> None:
    start, end = NOW - SKEW, NOW + DAY

    assert MISSING.is_fresh(start)
    assert not MISSING.is_ahead(start)
    assert not MISSING.is_fresh(math.nextafter(start, 0))
    assert MISSING.is_ahead(math.nextafter(start, 0))
    assert MISSING.is_fresh(math.nextafter(end, 0))
    assert not MISSING.is_fresh(end)


@pytest.mark.parametrize("value", [MISSING, FAILING, entry(MISSING)], ids=type)
def test_values_are_frozen_and_have_no_dict(value: Answer) -> None:
    """Ten thousand of them may be live at once."""
    name = dataclasses.fields(value)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)
    assert not hasattr(value, "__dict__")


AHEAD = answer(answered_at=NOW + SKEW + 1, fresh_until=NOW + DAY)


@cases("known expected", {
    "an answer": (entry(COPY), entry(COPY)),
    "an outage five minutes ahead":
        (entry(COPY, outage(NOW + SKEW)), entry(COPY, outage(NOW + SKEW))),
    "an answer with an outage further ahead":
        (entry(COPY, outage(NOW, last_attempt_at=NOW + SKEW + 1)), entry(COPY)),
    "an outage alone far ahead": (entry(None, outage(NOW + SKEW + 1)), None),
    "an answer far ahead": (entry(AHEAD), entry(AHEAD)),
    "an answer far ahead with an outage":
        (entry(AHEAD, outage(NOW)), entry(AHEAD, outage(NOW))),
})  # fmt: skip
def test_only_an_outage_dated_far_ahead_is_dropped(
    known: object, expected: object
) -> None:
    assert usable(known, now=NOW, policy=Policy()) == expected  # type: ignore[arg-type]


def test_entry_is_dropped_when_nothing_can_use_it() -> None:
    known = entry(COPY)
    end = NOW + 31 * DAY

    assert usable(known, now=end - 1, policy=Policy()) is known
    assert usable(known, now=end, policy=Policy()) is None


def test_outage_dated_far_ahead_does_not_prolong_the_answer() -> None:
    known = entry(COPY, outage(NOW + 40 * DAY))

    assert usable(known, now=NOW + 31 * DAY, policy=Policy()) is None


def test_key_is_the_origin_followed_by_any_terms() -> None:
    assert key_of(ORIGIN, "") == ORIGIN
    assert key_of(ORIGIN, "guard=off") == f"{ORIGIN} guard=off"


@cases("policy with_copy without", {
    "default": (Policy(), 30 * DAY, 30 * DAY),
    "a day": (Policy(unreachable_limit=DAY), DAY, DAY),
    "google_today": (Policy.google_today(), 30 * DAY, 12 * HOUR),
    "none without a copy": (Policy(unreachable_limit_without_copy=0), 30 * DAY, 0),
})  # fmt: skip
def test_limit_may_be_different_without_a_copy(
    policy: Policy, with_copy: float, without: float
) -> None:
    assert limit(COPY, policy) == with_copy
    assert [limit(last, policy) for last in (None, MISSING, RESTRICTED, REFUSED)] == [
        without
    ] * 4


@cases("fields with_copy without", {
    "the limit is the longest": ((3, 1, 2), 3, 3),
    "the grace is the longest": ((1, 3, 2), 3, 3),
    "the stale window is the longest": ((1, 2, 3), 3, 2),
    "none of them": ((0, 0, 0), 0, 0),
})  # fmt: skip
def test_span_is_the_longest_of_limit_grace_and_stale_window(
    fields: tuple[int, int, int], with_copy: int, without: int
) -> None:
    limit_days, grace_days, stale_days = fields
    policy = Policy(
        unreachable_limit=limit_days * DAY,
        outage_grace=grace_days * DAY,
        stale_window=stale_days * DAY,
    )

    assert span(COPY, policy) == with_copy * DAY
    assert span(MISSING, policy) == span(None, policy) == without * DAY
    assert longest_gap(COPY, policy) == max(with_copy, 2) * DAY


AN_HOUR = Policy(unreachable_limit=HOUR, stale_window=0)


@cases("last since policy expected", {
    "unavailable": (MISSING, None, Policy(), NOW + DAY),
    "a copy": (COPY, None, Policy(), NOW + 31 * DAY),
    "a copy for an hour": (COPY, None, AN_HOUR, NOW + DAY + HOUR),
    "restricted": (RESTRICTED, None, Policy(), NOW + 31 * DAY),
    "refused": (REFUSED, None, Policy(), NOW + 31 * DAY),
    "the last copy: forever": (COPY, None, Policy.google_2021(), math.inf),
    "but nothing else forever":
        (RESTRICTED, None, Policy.google_2021(), NOW + 31 * DAY),
    "an outage": (None, outage(NOW), Policy(), NOW + MINUTE + 30 * DAY),
    "at least two days": (None, outage(NOW), AN_HOUR, NOW + MINUTE + 2 * DAY),
    "an outage kept longer than the answer":
        (MISSING, outage(NOW + DAY), AN_HOUR, NOW + MINUTE + 3 * DAY),
    "an answer kept longer than the outage":
        (answer(fresh_until=NOW + 9 * DAY), outage(NOW), AN_HOUR, NOW + 9 * DAY + HOUR),
})  # fmt: skip
def test_entry_is_kept_until_nothing_can_use_it(
    last: Answer | None, since: Outage | None, policy: Policy, expected: float
) -> None:
    assert keep_until(entry(last, since), policy) == expected


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
        packed=Packed(draw(st.sampled_from([b"one", b"two"]))) if is_good else None,
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
        packed=body and Packed(body),
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


def test_outages_that_ended_at_the_same_moment_are_merged_in_any_order() -> None:
    """Their starts must not decide which is later, because merging changes them."""
    ends = {"last_attempt_at": NOW + DAY, "retry_at": NOW + 2 * DAY}
    known = [
        entry(answer(), outage(NOW + since, status=status, **ends))
        for since, status in ((9, 500), (1, 502), (5, 501))
    ]

    results = [
        merge(merge(x, y, now=NOW), z, now=NOW) for x, y, z in permutations(known)
    ]

    assert results == results[:1] * 6


def test_answer_dated_far_ahead_counts_as_the_earlier_one() -> None:
    ahead = entry(answer(answered_at=NOW + HOUR))

    assert merge(ahead, entry(answer()), now=NOW) == entry(answer())


def test_merge_and_usable_return_none_for_no_entry() -> None:
    assert merge(None, None, now=NOW) is None
    assert usable(None, now=NOW, policy=Policy()) is None
