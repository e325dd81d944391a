"""RFC 9309 §2.3.1 and §2.4: when an origin is asked, and what is known then."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._access import AccessResult
from robotsgate.caching._outcome import (
    Answered,
    BrokenRedirect,
    Failed,
    FailureKind,
    Outcome,
)
from robotsgate.caching._plan import (
    Plan,
    entry_after,
    is_answer_since,
    later,
    outdated,
    plan,
    suits,
    terms_of,
    under_our_clock,
)
from robotsgate.caching._policy import AddressGuard, AfterStaleWindow, Policy

from .builders import (
    DAY,
    HOUR,
    MINUTE,
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

        first = next_entry(None, answered(500), now=old.retain_until)
        assert entry == replace(first, is_first_sight=False)

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

    @pytest.mark.parametrize(
        ("since", "expected"), [(NOW + 60, NOW), (NOW - HOUR, NOW - HOUR)]
    )
    def test_outage_of_a_clock_that_is_ahead_began_no_later_than_now(
        self, since: float, expected: float
    ) -> None:
        first = first_entry(failed(), now=since)
        entry = next_entry(first, failed(), now=NOW + 60)

        found = under_our_clock(entry, NOW)

        assert (found.checked_at, found.unreachable_since) == (NOW, expected)

    @pytest.mark.parametrize("ahead", [-60.0, 0.0, 300.001, 10 * DAY])
    def test_entry_of_the_past_or_of_a_clock_that_was_set_is_left_alone(
        self, ahead: float
    ) -> None:
        entry = self.entry(ahead=ahead)

        assert under_our_clock(entry, NOW) is entry


class TestTerms:
    """What must be the same for one checker to use what another has got."""

    @pytest.mark.parametrize("preset", PRESETS)
    def test_presets_fetch_on_the_usual_terms(self, preset: str) -> None:
        assert terms_of(PRESETS[preset]) == "redirects"

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            pytest.param(
                Policy(address_guard=AddressGuard.PUBLIC_ONLY),
                "public-only",
                id="another guard",
            ),
            pytest.param(Policy(address_guard=AddressGuard.OFF), "off", id="no guard"),
            pytest.param(
                Policy(allowed_networks=["10.1.0.0/16", "fd00:1::/32"]),
                "redirects 10.1.0.0/16 fd00:1::/32",
                id="networks",
            ),
            pytest.param(
                Policy(max_redirects=4), "redirects redirects=4", id="fewer redirects"
            ),
            pytest.param(
                Policy(max_redirects=6), "redirects redirects=6", id="more redirects"
            ),
            pytest.param(
                Policy(max_body_bytes=511_999),
                "redirects bytes=511999",
                id="a smaller limit",
            ),
            pytest.param(
                Policy(max_body_bytes=512_001),
                "redirects bytes=512001",
                id="a larger limit",
            ),
            pytest.param(
                Policy(
                    address_guard=AddressGuard.OFF,
                    allowed_networks=["10.0.0.0/8"],
                    max_redirects=0,
                    max_body_bytes=0,
                ),
                "off 10.0.0.0/8 redirects=0 bytes=0",
                id="all of them",
            ),
        ],
    )
    def test_unusual_terms_are_named(self, policy: Policy, expected: str) -> None:
        assert terms_of(policy) == expected

    def test_usual_numbers_are_those_of_the_default_policy(self) -> None:
        policy = Policy(max_redirects=5, max_body_bytes=512_000)

        assert terms_of(policy) == terms_of(Policy())

    def test_policies_that_differ_in_one_term_differ(self) -> None:
        policies = [
            Policy(
                address_guard=guard,
                allowed_networks=networks,
                max_redirects=redirects,
                max_body_bytes=octets,
            )
            for guard in AddressGuard
            for networks in ([], ["10.0.0.0/8"], ["10.0.0.0/8", "fd00::/8"])
            for redirects in (4, 5, 10, 1_000)
            for octets in (0, 10, 1_000, 512_000)
        ]

        assert len(set(map(terms_of, policies))) == len(policies)

    @pytest.mark.parametrize(
        "outcome",
        [answered(), answered(404), answered(500), broken_redirect(), failed()],
        ids=["a file", "no file", "an error", "a broken redirect", "a failure"],
    )
    def test_entry_names_the_terms_it_was_got_on(self, outcome: Outcome) -> None:
        policy = Policy(max_redirects=7, allowed_networks=["10.0.0.0/8"])

        first = first_entry(outcome, policy=policy)
        second = next_entry(first, outcome, now=NOW + DAY, policy=policy)

        assert first.terms == second.terms == terms_of(policy)


class TestSuits:
    """A store may hold what another policy has made of the same answers."""

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize(
        "outcome",
        [
            answered(),
            answered(403),
            answered(404),
            answered(429, retry_after="7200"),
            answered(500),
            answered(503, body=b"<h1>Not found</h1>"),
            answered(503, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
            broken_redirect(),
            failed(),
            refused(),
        ],
        ids=[
            "a file",
            "403",
            "404",
            "429",
            "500",
            "a missing page",
            "a late retry",
            "a broken redirect",
            "a failure",
            "a refusal",
        ],
    )
    def test_entry_suits_the_policy_that_it_was_made_under(
        self, outcome: Outcome, preset: str
    ) -> None:
        policy = PRESETS[preset]

        assert suits(first_entry(outcome, policy=policy), policy)

    @pytest.mark.parametrize(
        ("outcome", "other", "expected"),
        [
            pytest.param(answered(), Policy.strict(), True, id="a file"),
            pytest.param(answered(404), Policy.strict(), True, id="no file"),
            pytest.param(answered(403), Policy.strict(), False, id="a closed door"),
            pytest.param(answered(429), Policy.rfc9309(), False, id="too many"),
            pytest.param(
                broken_redirect(), Policy.strict(), False, id="a broken redirect"
            ),
            pytest.param(
                broken_redirect(), Policy.rfc9309(), True, id="one that is no file"
            ),
            pytest.param(
                answered(503, body=b"<h1>Not found</h1>"),
                Policy.google_today(),
                True,
                id="a missing page where pages are read",
            ),
            pytest.param(
                answered(503, body=b"<h1>Not found</h1>"),
                Policy.rfc9309(),
                False,
                id="a missing page where none are read",
            ),
            pytest.param(failed(), Policy.strict(), True, id="a failure"),
            pytest.param(refused(), Policy.rfc9309(), True, id="a refusal"),
        ],
    )
    def test_entry_suits_another_policy_that_takes_the_answer_alike(
        self, outcome: Outcome, other: Policy, *, expected: bool
    ) -> None:
        assert suits(first_entry(outcome), other) is expected

    def test_unavailable_answer_that_is_no_missing_page_does_not_suit(self) -> None:
        lenient = Policy(on_too_many_requests=AccessResult.UNAVAILABLE)

        assert not suits(first_entry(answered(429), policy=lenient), Policy())

    def test_closed_door_is_not_taken_for_a_missing_page(self) -> None:
        """Nothing of ours writes such an entry, but a store may hold anything."""
        entry = first_entry(answered(401), policy=Policy.strict())

        assert not suits(replace(entry, status=503), Policy())

    @pytest.mark.parametrize(
        ("seconds", "expected"), [(DAY, True), (math.nextafter(DAY, 2 * DAY), False)]
    )
    def test_entry_that_stands_for_longer_than_any_of_ours_does_not_suit(
        self, seconds: float, *, expected: bool
    ) -> None:
        policy = Policy(max_lifetime=DAY)
        entry = replace(first_entry(failed(), now=0), next_fetch_at=seconds)

        assert suits(entry, policy) is expected

    @pytest.mark.parametrize(
        "policy",
        [
            Policy(default_lifetime=3 * DAY, max_lifetime=DAY),
            Policy(max_lifetime=3 * DAY),
            Policy(max_lifetime=DAY, retry_after_max=3 * DAY),
            Policy(max_lifetime=DAY, retry_max=3 * DAY),
        ],
        ids=["default_lifetime", "max_lifetime", "retry_after_max", "retry_max"],
    )
    def test_longest_span_of_the_policy_may_be_used_up(self, policy: Policy) -> None:
        entry = replace(first_entry(failed(), now=0), next_fetch_at=3 * DAY)

        assert suits(entry, policy)

    def test_outdated_entry_is_fetched_anew_and_keeps_its_copy(self) -> None:
        entry = first_entry(answered())

        found = outdated(entry)

        assert plan(found, NOW) is Plan.FETCH
        assert found == replace(entry, next_fetch_at=NOW)


class TestIsAnswerSince:
    @pytest.mark.parametrize(
        "outcome",
        [answered(), answered(404), broken_redirect()],
        ids=["a file", "no file", "a broken redirect"],
    )
    def test_answer_that_came_meanwhile_is_one(self, outcome: Outcome) -> None:
        entry = first_entry(outcome)

        assert is_answer_since(entry, NOW - 1, NOW + 1)

    def test_closed_door_that_came_meanwhile_is_one(self) -> None:
        entry = first_entry(answered(401), policy=Policy.strict())

        assert is_answer_since(entry, NOW - 1, NOW + 1)

    @pytest.mark.parametrize(
        "outcome",
        [answered(500), failed(), refused()],
        ids=["500", "failure", "refusal"],
    )
    def test_failure_that_came_meanwhile_is_none(self, outcome: Outcome) -> None:
        entry = first_entry(outcome)

        assert plan(entry, NOW + 1) is Plan.USE
        assert not is_answer_since(entry, NOW - 1, NOW + 1)

    @pytest.mark.parametrize(
        ("began", "now", "expected"),
        [
            pytest.param(-math.ulp(NOW), 0, True, id="just after the beginning"),
            pytest.param(0, 0, False, id="at the beginning"),
            pytest.param(1, 2, False, id="before the beginning"),
            pytest.param(-1, DAY - 1, True, id="while it is fresh"),
            pytest.param(-1, DAY, False, id="when its lifetime is over"),
            pytest.param(-2, -1, False, id="from the future"),
        ],
    )
    def test_answer_counts_while_it_stands_and_came_after_the_beginning(
        self, began: float, now: float, *, expected: bool
    ) -> None:
        entry = first_entry(answered())

        assert is_answer_since(entry, NOW + began, NOW + now) is expected


def outage(
    *, since: float, until: float = NOW, kind: FailureKind = FailureKind.CONNECT
) -> Entry:
    """What is known at `until` of an origin without a copy that failed twice."""
    return next_entry(first_entry(failed(kind), now=since), failed(kind), now=until)


def failed_with_copy(
    *, since: float, until: float, kind: FailureKind = FailureKind.CONNECT
) -> Entry:
    """What is known at `until` of an origin that failed twice after a good answer."""
    good = first_entry(answered(), now=since - HOUR)
    first = next_entry(good, failed(kind), now=since)
    return next_entry(first, failed(kind), now=until)


class TestLater:
    def test_entry_without_another_is_taken(self) -> None:
        entry = first_entry(failed())

        assert later(entry, None, NOW, Policy()) is entry

    @pytest.mark.parametrize(
        ("one", "other", "taken"),
        [
            pytest.param(0, -1, "one", id="one is later"),
            pytest.param(-1, 0, "other", id="the other is later"),
            pytest.param(-1, -1, "one", id="both were at once"),
            pytest.param(-1, 1, "one", id="the other is from the future"),
            pytest.param(1, -1, "other", id="one is from the future"),
            pytest.param(0, 1, "one", id="one is of now, the other from the future"),
            pytest.param(1, 0, "other", id="the other is of now, one from the future"),
            pytest.param(2, 1, "one", id="both are from the future, one is later"),
            pytest.param(1, 2, "other", id="both are from the future, other is later"),
            pytest.param(1, 1, "one", id="both are from the future at once"),
        ],
    )
    def test_what_was_checked_later_is_taken_and_the_future_last(
        self, one: float, other: float, taken: str
    ) -> None:
        entries = {
            "one": first_entry(answered(body=b"one"), now=NOW + one),
            "other": first_entry(answered(body=b"other"), now=NOW + other),
        }

        found = later(entries["one"], entries["other"], NOW, Policy())

        assert found is entries[taken]

    @pytest.mark.parametrize(
        "outcome",
        [answered(500), answered(429), failed(), failed(FailureKind.POOL)],
        ids=["500", "429", "failure", "full pool"],
    )
    def test_failure_without_a_copy_gets_that_of_the_older(
        self, outcome: Outcome
    ) -> None:
        old = first_entry(answered(), now=NOW - HOUR)
        new = first_entry(outcome)

        found = later(new, old, NOW, Policy())

        assert later(old, new, NOW, Policy()) == found
        assert found == replace(
            new,
            copy=old.copy,
            unreachable_since=NOW,
            retain_until=new.next_fetch_at + 30 * DAY,
            is_first_sight=False,
        )

    def test_failure_with_an_older_copy_gets_the_later_one(self) -> None:
        old = first_entry(answered(body=b"later"), now=NOW - HOUR)
        new = failed_with_copy(since=NOW - 2 * HOUR, until=NOW)

        found = later(new, old, NOW, Policy())

        assert found.copy == old.copy
        assert found.checked_at == NOW
        assert found.failures == new.failures

    def test_failure_with_a_later_copy_keeps_it(self) -> None:
        new = failed_with_copy(since=NOW - HOUR, until=NOW)
        old = first_entry(answered(body=b"other"), now=NOW - 2 * HOUR - 1)

        assert later(new, old, NOW, Policy()) is new
        assert later(old, new, NOW, Policy()) is new

    def test_copy_that_an_answer_has_ended_does_not_come_back(self) -> None:
        """The store may have missed that answer, and hold what was before it."""
        old = first_entry(answered(), now=NOW - 3 * HOUR)
        ended = next_entry(old, answered(404), now=NOW - 2 * HOUR)
        new = next_entry(ended, failed(), now=NOW)

        assert later(new, old, NOW, Policy()) is new
        assert later(old, new, NOW, Policy()) is new

    def test_refusal_ends_the_copy_that_came_before_it(self) -> None:
        new = failed_with_copy(since=NOW - 3 * HOUR, until=NOW)
        old = first_entry(refused(), now=NOW - HOUR)

        assert later(new, old, NOW, Policy()).copy is None

    def test_days_of_refusals_do_not_count_for_who_knew_of_nothing(self) -> None:
        first = first_entry(refused(), now=NOW - 40 * DAY)
        old = next_entry(first, refused(), now=NOW - DAY)
        new = first_entry(failed())

        found = later(new, old, NOW, Policy())

        assert found.unreachable_since == NOW

    def test_failure_that_knew_of_nothing_gets_the_copy(self) -> None:
        old = first_entry(answered(), now=NOW - 3 * HOUR)
        new = first_entry(failed())

        found = later(new, old, NOW, Policy())

        assert (found.copy, found.is_first_sight) == (old.copy, False)
        assert found.unreachable_since == NOW

    def test_answer_without_a_file_ends_the_copy_that_came_before_it(self) -> None:
        new = failed_with_copy(since=NOW - 3 * HOUR, until=NOW)
        old = first_entry(answered(404), now=NOW - HOUR)

        found = later(new, old, NOW, Policy())

        assert found.copy is None
        assert found.unreachable_since == NOW - HOUR

    def test_answer_of_the_future_ends_no_copy(self) -> None:
        new = failed_with_copy(since=NOW - 3 * HOUR, until=NOW)
        old = first_entry(answered(404), now=NOW + HOUR)

        assert later(new, old, NOW, Policy()) is new

    @pytest.mark.parametrize(
        ("new", "old"),
        [
            pytest.param(answered(404), answered(), id="no file"),
            pytest.param(broken_redirect(), answered(), id="a broken redirect"),
            pytest.param(refused(), answered(), id="a refused address"),
            pytest.param(failed(), failed(), id="a failure after a failure"),
        ],
    )
    def test_what_must_not_or_cannot_get_a_copy_stays_as_it_is(
        self, new: Outcome, old: Outcome
    ) -> None:
        newer = first_entry(new)
        older = first_entry(old, now=NOW - HOUR)

        assert later(newer, older, NOW, Policy()) == newer
        assert later(older, newer, NOW, Policy()) == newer

    def test_copy_is_carried_until_nothing_can_use_the_older(self) -> None:
        old = first_entry(answered())
        end = old.retain_until
        last = math.nextafter(end, 0)
        new = first_entry(failed(), now=last)

        assert later(new, old, last, Policy()).copy == old.copy
        assert later(new, old, end, Policy()) is new

    @pytest.mark.parametrize(
        ("after", "is_carried"),
        [
            (AfterStaleWindow.ALLOW, False),
            (AfterStaleWindow.LAST_COPY, True),
            (AfterStaleWindow.DISALLOW, False),
        ],
    )
    def test_copy_beyond_its_window_is_carried_only_if_it_is_used(
        self, after: AfterStaleWindow, *, is_carried: bool
    ) -> None:
        policy = Policy(after_stale_window=after)
        old = entry_in_outage(has_copy=True, since=NOW - 30 * DAY, policy=policy)
        new = first_entry(failed(), policy=policy)

        found = later(new, old, NOW, policy)

        assert old.retain_until > NOW
        assert (found.copy == old.copy) is is_carried
        assert (found is new) is not is_carried

    @pytest.mark.parametrize("after", AfterStaleWindow)
    def test_copy_is_carried_in_the_last_moment_of_its_window(
        self, after: AfterStaleWindow
    ) -> None:
        policy = Policy(after_stale_window=after)
        since = NOW - 30 * DAY
        old = entry_in_outage(has_copy=True, since=since, policy=policy)
        now = math.nextafter(NOW, 0)
        new = first_entry(failed(), now=now, policy=policy)

        found = later(new, old, now, policy)

        assert found.copy == old.copy
        assert found.unreachable_since == since

    def test_last_copy_is_carried_for_good(self) -> None:
        policy = Policy(after_stale_window=AfterStaleWindow.LAST_COPY)
        old = first_entry(answered(), now=NOW - YEAR, policy=policy)
        new = first_entry(failed(), policy=policy)

        found = later(new, old, NOW, policy)

        assert new.retain_until < math.inf
        assert found.copy == old.copy
        assert found.retain_until == math.inf

    @pytest.mark.parametrize(
        ("new", "old", "since"),
        [
            pytest.param(
                outage(since=NOW - MINUTE),
                first_entry(answered(), now=NOW - HOUR),
                -MINUTE,
                id="answered before it",
            ),
            pytest.param(
                outage(since=NOW - 2 * HOUR),
                first_entry(answered(), now=NOW - HOUR),
                -HOUR,
                id="answered amid it",
            ),
            pytest.param(
                outage(since=NOW - 2 * HOUR),
                first_entry(answered(), now=NOW + DAY),
                0,
                id="answered in the future",
            ),
            pytest.param(
                replace(outage(since=NOW - HOUR), unreachable_since=None),
                first_entry(answered(), now=NOW - DAY),
                0,
                id="answered, and the newer does not tell",
            ),
            pytest.param(
                outage(since=NOW - HOUR),
                failed_with_copy(since=NOW - 3 * HOUR, until=NOW - 2 * HOUR),
                -3 * HOUR,
                id="failed earlier",
            ),
            pytest.param(
                outage(since=NOW - 3 * HOUR),
                failed_with_copy(since=NOW - 2 * HOUR, until=NOW - HOUR),
                -3 * HOUR,
                id="failed later",
            ),
            pytest.param(
                outage(since=NOW - HOUR),
                failed_with_copy(
                    since=NOW - 3 * HOUR, until=NOW - 2 * HOUR, kind=FailureKind.POOL
                ),
                -HOUR,
                id="had no place in the pool",
            ),
            pytest.param(
                outage(since=NOW - HOUR, kind=FailureKind.POOL),
                failed_with_copy(since=NOW - 3 * HOUR, until=NOW - 2 * HOUR),
                -3 * HOUR,
                id="failed before the pool was full",
            ),
        ],
    )
    def test_outage_began_where_either_knows_of_it_and_after_the_last_answer(
        self, new: Entry, old: Entry, since: float
    ) -> None:
        found = later(new, old, NOW, Policy())

        assert found.copy == old.copy
        assert found.unreachable_since == NOW + since
        assert found.retain_until == new.next_fetch_at + 30 * DAY
