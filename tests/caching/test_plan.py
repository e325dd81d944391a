"""RFC 9309 §2.3.1 and §2.4: when an origin is asked, and what is known then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._outcome import (
    Answered,
    BrokenRedirect,
    Failed,
    FailureKind,
    Outcome,
)
from robotsgate.caching._plan import Plan, entry_after, plan, under_our_clock
from robotsgate.caching._policy import AfterStaleWindow, Policy
from robotsgate.robotstxt._access import AccessResult

from .builders import (
    DAY,
    HOUR,
    NOW,
    ORIGIN,
    PRESETS,
    RULES,
    answered,
    broken_redirect,
    entry_in_outage,
    failed,
    first_entry,
    next_entry,
    refused,
)

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry

YEAR = 365 * DAY


class TestPlan:
    def test_unknown_origin_is_fetched(self) -> None:
        assert plan(None, NOW) is Plan.FETCH

    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [
            pytest.param(0, Plan.USE, id="at once"),
            pytest.param(DAY - 1, Plan.USE, id="while it is fresh"),
            pytest.param(DAY, Plan.FETCH, id="when its lifetime is over"),
            pytest.param(YEAR, Plan.FETCH, id="long after"),
            pytest.param(-1, Plan.FETCH, id="with the clock set back a second"),
            pytest.param(
                -10 * YEAR, Plan.FETCH, id="with the clock set back for years"
            ),
        ],
    )
    def test_good_entry_is_used_while_it_is_fresh(
        self, seconds: float, expected: Plan
    ) -> None:
        entry = first_entry(answered())

        assert plan(entry, NOW + seconds) is expected

    def test_last_moment_of_freshness_is_used(self) -> None:
        entry = first_entry(answered())

        assert plan(entry, math.nextafter(entry.next_fetch_at, 0)) is Plan.USE
        assert plan(entry, entry.next_fetch_at) is Plan.FETCH

    @pytest.mark.parametrize(
        "outcome",
        [answered(500), answered(503), answered(429), failed(), refused()],
        ids=["500", "503", "429", "failure", "refusal"],
    )
    def test_failed_origin_is_not_asked_before_its_retry(
        self, outcome: Outcome
    ) -> None:
        entry = first_entry(outcome)

        assert plan(entry, NOW) is Plan.USE
        assert plan(entry, math.nextafter(entry.next_fetch_at, 0)) is Plan.USE
        assert plan(entry, entry.next_fetch_at) is Plan.FETCH


class TestEntryAfterAnAnswer:
    def test_good_answer_is_kept_with_its_copy(self) -> None:
        outcome = Answered(
            status=206,
            headers={"cache-control": "max-age=600"},
            body=RULES,
            redirects=3,
        )

        entry = first_entry(outcome)

        assert entry.origin == ORIGIN
        assert entry.access is AccessResult.SUCCESSFUL
        assert entry.status == 206
        assert entry.redirects == 3
        assert entry.error is None
        assert entry.failure is None
        assert entry.checked_at == NOW
        assert entry.next_fetch_at == NOW + 600
        assert entry.retain_until == NOW + 600 + 30 * DAY
        assert entry.unreachable_since is None
        assert entry.failures == 0
        assert entry.copy is not None
        assert entry.copy.body == RULES
        assert entry.copy.fetched_at == NOW
        assert entry.copy.fresh_until == NOW + 600

    def test_empty_answer_is_a_copy_without_rules(self) -> None:
        entry = first_entry(answered(204))

        assert entry.copy is not None
        assert entry.copy.body == b""

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
    def test_unavailable_answer_is_kept_for_its_lifetime(self, status: int) -> None:
        entry = first_entry(answered(status, cache_control="max-age=600"))

        assert entry.access is AccessResult.UNAVAILABLE
        assert entry.status == status
        assert entry.next_fetch_at == NOW + 600
        assert entry.retain_until == NOW + 600
        assert entry.copy is None
        assert entry.failures == 0
        assert entry.error is None

    def test_unavailable_answer_has_the_default_lifetime(self) -> None:
        assert first_entry(answered(404)).next_fetch_at == NOW + DAY

    def test_missing_page_has_a_lifetime_and_no_retry(self) -> None:
        outcome = answered(503, body=b"<h1>Not found</h1>", retry_after="120")

        entry = first_entry(outcome)

        assert entry.access is AccessResult.UNAVAILABLE
        assert entry.next_fetch_at == NOW + DAY
        assert entry.copy is None

    def test_restricted_answer_is_kept_for_its_lifetime(self) -> None:
        entry = first_entry(answered(403), policy=Policy.strict())

        assert entry.access is AccessResult.RESTRICTED
        assert entry.next_fetch_at == NOW + DAY
        assert entry.copy is None
        assert entry.unreachable_since is None

    def test_broken_redirect_is_kept_for_its_lifetime(self) -> None:
        outcome = BrokenRedirect(
            status=301,
            headers={"cache-control": "max-age=600"},
            error="a sixth redirect",
            redirects=5,
        )

        entry = first_entry(outcome)

        assert entry.access is AccessResult.UNAVAILABLE
        assert entry.status == 301
        assert entry.redirects == 5
        assert entry.error == "a sixth redirect"
        assert entry.failure is None
        assert entry.next_fetch_at == NOW + 600

    @pytest.mark.parametrize(
        ("outcome", "policy"),
        [
            pytest.param(answered(404), Policy(), id="a missing file"),
            pytest.param(broken_redirect(), Policy(), id="a broken redirect"),
            pytest.param(answered(401), Policy.strict(), id="a closed door"),
        ],
    )
    def test_answer_without_a_file_ends_the_last_copy(
        self, outcome: Outcome, policy: Policy
    ) -> None:
        """The owner took the file away: its rules are no longer the owner's."""
        good = first_entry(answered(), policy=policy)

        entry = next_entry(good, outcome, now=NOW + DAY, policy=policy)

        assert entry.copy is None

    @pytest.mark.parametrize(
        "outcome", [answered(), answered(404)], ids=["a good answer", "a missing file"]
    )
    def test_answer_ends_the_outage(self, outcome: Outcome) -> None:
        entry = entry_in_outage(has_copy=True, since=NOW, policy=Policy())

        entry = next_entry(entry, outcome, now=NOW + HOUR)
        again = next_entry(entry, answered(500), now=NOW + 2 * DAY)

        assert entry.unreachable_since is None
        assert entry.failures == 0
        assert again.unreachable_since == NOW + 2 * DAY
        assert again.failures == 1

    def test_new_copy_takes_the_place_of_the_old_one(self) -> None:
        good = first_entry(answered())

        entry = next_entry(good, answered(body=b"new"), now=NOW + DAY)

        assert entry.copy is not None
        assert entry.copy.body == b"new"
        assert entry.copy.fetched_at == NOW + DAY


class TestEntryAfterAFailure:
    def test_response_is_kept_as_evidence(self) -> None:
        outcome = Answered(status=502, redirects=2)

        entry = first_entry(outcome)

        assert entry.origin == ORIGIN
        assert entry.access is AccessResult.UNREACHABLE
        assert entry.status == 502
        assert entry.redirects == 2
        assert entry.error is None
        assert entry.failure is None
        assert entry.copy is None
        assert entry.checked_at == NOW
        assert entry.unreachable_since == NOW
        assert entry.failures == 1

    @pytest.mark.parametrize("kind", FailureKind)
    def test_failure_is_kept_as_evidence(self, kind: FailureKind) -> None:
        outcome = Failed(
            kind=kind, error="what happened", redirects=1, cause=OSError("behind it")
        )

        entry = first_entry(outcome)

        assert entry.access is AccessResult.UNREACHABLE
        assert entry.status is None
        assert entry.redirects == 1
        assert entry.error == "what happened"
        assert entry.failure is kind

    def test_broken_redirect_can_be_a_failure(self) -> None:
        outcome = BrokenRedirect(
            status=302, headers={"retry-after": "120"}, error="a loop", redirects=5
        )

        entry = first_entry(outcome, policy=Policy.strict())

        assert entry.access is AccessResult.UNREACHABLE
        assert entry.status == 302
        assert entry.error == "a loop"
        assert entry.failure is None
        assert entry.next_fetch_at == NOW + 120

    def test_failures_are_counted_and_retries_grow(self) -> None:
        entry = first_entry(answered(500))
        spans = [entry.next_fetch_at - NOW]

        for _ in range(8):
            now = entry.next_fetch_at
            entry = next_entry(entry, answered(500), now=now)
            spans.append(entry.next_fetch_at - now)

        assert entry.failures == 9
        assert entry.unreachable_since == NOW
        share = spans[0] / 60
        assert 1 <= share < 1.1
        assert [span / share for span in spans] == pytest.approx(
            [60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]
        )

    def test_503_is_asked_again_sooner(self) -> None:
        assert 30 <= first_entry(answered(503)).next_fetch_at - NOW < 33
        assert 60 <= first_entry(answered(500)).next_fetch_at - NOW < 66

    @pytest.mark.parametrize("status", [429, 500, 503, 302, 600])
    def test_retry_after_is_obeyed_to_the_second(self, status: int) -> None:
        entry = first_entry(answered(status, retry_after="7200"))

        assert entry.next_fetch_at == NOW + 7_200

    def test_retry_after_goes_before_the_schedule_of_many_failures(self) -> None:
        entry = first_entry(answered(503))
        for _ in range(20):
            entry = next_entry(entry, answered(503), now=entry.next_fetch_at)

        now = entry.next_fetch_at
        entry = next_entry(entry, answered(503, retry_after="61"), now=now)

        assert entry.next_fetch_at == now + 61

    def test_broken_retry_after_leaves_the_schedule(self) -> None:
        entry = first_entry(answered(503, retry_after="soon"))

        assert 30 <= entry.next_fetch_at - NOW < 33

    def test_caching_headers_of_a_failure_do_not_matter(self) -> None:
        entry = first_entry(answered(500, cache_control="max-age=604800"))

        assert entry.next_fetch_at - NOW < 66

    def test_thousands_of_failures_do_not_overflow(self) -> None:
        entry = first_entry(answered(500))

        for _ in range(3_000):
            entry = next_entry(entry, answered(500), now=entry.next_fetch_at)

        assert entry.failures == 3_001
        assert 3_600 <= entry.next_fetch_at - entry.checked_at < 3_960

    @pytest.mark.parametrize("preset", PRESETS)
    def test_last_good_copy_is_kept_while_the_window_is_open(self, preset: str) -> None:
        policy = PRESETS[preset]
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        later = math.nextafter(NOW + 30 * DAY, 0)
        entry = next_entry(entry, answered(500), now=later, policy=policy)

        assert entry.copy is not None
        assert entry.copy.body == RULES

    @pytest.mark.parametrize(
        ("after", "is_kept"),
        [
            (AfterStaleWindow.ALLOW, False),
            (AfterStaleWindow.LAST_COPY, True),
            (AfterStaleWindow.DISALLOW, False),
        ],
    )
    def test_copy_beyond_its_window_is_kept_only_if_it_is_used(
        self, after: AfterStaleWindow, *, is_kept: bool
    ) -> None:
        policy = Policy(after_stale_window=after)
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        entry = next_entry(entry, answered(500), now=NOW + 30 * DAY, policy=policy)

        assert (entry.copy is not None) is is_kept

    def test_entry_is_retained_for_a_window_beyond_its_retry(self) -> None:
        entry = first_entry(answered(500))

        assert entry.retain_until == entry.next_fetch_at + 30 * DAY

    def test_entry_that_nothing_could_use_is_as_good_as_none(self) -> None:
        """A store may hold it or not: the answer is the same."""
        old = entry_in_outage(has_copy=True, since=NOW, policy=Policy())

        entry = next_entry(old, answered(500), now=old.retain_until)

        assert entry == next_entry(None, answered(500), now=old.retain_until)

    def test_entry_is_of_use_until_the_last_moment(self) -> None:
        good = first_entry(answered())

        now = math.nextafter(good.retain_until, 0)
        entry = next_entry(good, answered(500), now=now)

        assert entry.copy == good.copy


class TestLastCopy:
    """`LAST_COPY` is "the last good copy for as long as it takes"."""

    def test_window_of_no_length_does_not_lose_the_copy(self) -> None:
        """It once did: a fresh entry was retained for the window alone."""
        policy = Policy(stale_window=0, after_stale_window=AfterStaleWindow.LAST_COPY)
        good = first_entry(answered(), policy=policy)

        entry = next_entry(good, answered(500), now=NOW + DAY, policy=policy)

        assert entry.copy == good.copy

    def test_copy_outlives_a_time_in_which_nobody_asked(self) -> None:
        """Else the origin, known to disallow, is allowed 30 days later."""
        policy = Policy.google_2021()
        entry = entry_in_outage(has_copy=True, since=NOW, policy=policy)

        entry = next_entry(entry, answered(500), now=NOW + 40 * DAY, policy=policy)

        assert entry.copy is not None
        assert entry.copy.body == RULES


class TestClock:
    def test_clock_set_back_during_an_outage_moves_its_start_back(self) -> None:
        entry = entry_in_outage(has_copy=True, since=NOW, policy=Policy())

        entry = next_entry(entry, answered(500), now=NOW - YEAR)

        assert entry.unreachable_since == NOW - YEAR
        assert entry.checked_at == NOW - YEAR
        assert entry.failures == 2

    def test_clock_set_back_and_forward_keeps_the_earlier_start(self) -> None:
        entry = entry_in_outage(has_copy=True, since=NOW, policy=Policy())

        entry = next_entry(entry, answered(500), now=NOW - DAY)
        entry = next_entry(entry, answered(500), now=NOW + DAY)

        assert entry.unreachable_since == NOW - DAY

    def test_clock_set_back_does_not_lengthen_freshness(self) -> None:
        good = first_entry(answered())

        at_once = plan(good, NOW - 1)
        entry = next_entry(good, answered(), now=NOW - YEAR)

        assert at_once is Plan.FETCH
        assert entry.next_fetch_at == NOW - YEAR + DAY

    def test_clock_set_forward_for_years_forgets_what_was_known(self) -> None:
        good = first_entry(answered())

        entry = next_entry(good, answered(500), now=NOW + 10 * YEAR)

        assert entry.copy is None
        assert entry.unreachable_since == NOW + 10 * YEAR

    def test_entry_from_a_wrong_future_is_corrected_by_the_next_attempt(self) -> None:
        wrong = first_entry(answered(500), now=NOW + 10 * YEAR)

        entry = next_entry(wrong, answered(500), now=NOW)

        assert plan(wrong, NOW) is Plan.FETCH
        assert entry.unreachable_since == NOW
        assert plan(entry, NOW) is Plan.USE

    @pytest.mark.parametrize("now", [0.0, -YEAR, 2.0**31, 2.0**40])
    def test_clock_may_show_anything(self, now: float) -> None:
        good = first_entry(answered(), now=now)
        bad = next_entry(good, answered(503), now=now + DAY)

        assert plan(good, now) is Plan.USE
        assert bad.copy == good.copy
        assert plan(bad, now + DAY) is Plan.USE


class TestRefusedAddress:
    def test_refusals_do_not_count_towards_the_outage(self) -> None:
        entry = first_entry(refused())
        for day in range(1, 60):
            entry = next_entry(entry, refused(), now=NOW + day * DAY)

        entry = next_entry(entry, answered(500), now=NOW + 60 * DAY)

        assert entry.unreachable_since == NOW + 60 * DAY

    def test_outage_before_a_refusal_does_not_go_on_through_it(self) -> None:
        entry = entry_in_outage(has_copy=True, since=NOW, policy=Policy())

        entry = next_entry(entry, refused(), now=NOW + DAY)
        entry = next_entry(entry, failed(), now=NOW + 29 * DAY)

        assert entry.unreachable_since == NOW + 29 * DAY

    def test_refusal_drops_the_copy_so_that_none_outlives_its_window(self) -> None:
        good = first_entry(answered())

        entry = next_entry(good, refused(), now=NOW + DAY)

        assert entry.copy is None

    def test_refusals_are_asked_again_ever_more_rarely(self) -> None:
        first = first_entry(refused())

        second = next_entry(first, refused(), now=first.next_fetch_at)

        assert second.failures == 2
        assert second.next_fetch_at - second.checked_at == pytest.approx(
            2 * (first.next_fetch_at - first.checked_at)
        )


def test_entry_is_that_of_the_origin_that_was_asked() -> None:
    other = "http://example.org:8080"

    entry = entry_after(None, answered(), origin=other, now=NOW, policy=Policy())

    assert entry.origin == other


class TestUnderOurClock:
    """Clocks of workers that share a store may differ by minutes."""

    def entry(self, *, ahead: float) -> Entry:
        return first_entry(answered(), now=NOW + ahead)

    @pytest.mark.parametrize("ahead", [0.001, 1.0, 299.0, 300.0])
    def test_entry_of_a_clock_that_is_ahead_counts_from_now_on(
        self, ahead: float
    ) -> None:
        entry = self.entry(ahead=ahead)

        found = under_our_clock(entry, NOW)

        assert found.checked_at == NOW
        assert found.next_fetch_at == pytest.approx(NOW + DAY)
        assert found.copy is not None
        assert found.copy.fetched_at == pytest.approx(NOW)
        assert found.copy.fresh_until == pytest.approx(NOW + DAY)
        assert found.copy.body == RULES
        assert plan(found, NOW) is Plan.USE
        assert plan(found, NOW + DAY + 1) is Plan.FETCH

    def test_entry_without_a_copy_is_brought_over_as_well(self) -> None:
        entry = first_entry(answered(404), now=NOW + 60)

        found = under_our_clock(entry, NOW)

        assert found.copy is None
        assert plan(found, NOW) is Plan.USE

    @pytest.mark.parametrize("ahead", [-60.0, 0.0, 300.001, 10 * DAY])
    def test_entry_of_the_past_or_of_a_clock_that_was_set_is_left_alone(
        self, ahead: float
    ) -> None:
        entry = self.entry(ahead=ahead)

        assert under_our_clock(entry, NOW) is entry
