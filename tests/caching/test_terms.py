"""Which entries a policy can use, and for how long."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate.caching._entry import keep_until, key_of, limit, longest_gap, span
from robotsgate.caching._policy import (
    AccessResult,
    AddressGuard,
    AfterUnreachableLimit,
    Policy,
    terms_of,
)
from tests.tables import cases

from .builders import DAY, HOUR, MINUTE, NOW, ORIGIN, answer, entry, outage

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Outage

TERMS: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"address_guard": AddressGuard.OFF}, "guard=off"),
    (
        {"allowed_networks": ["10.0.0.0/8", "FD00::/32"]},
        "networks=10.0.0.0/8,fd00::/32",
    ),
    ({"max_redirects": 3}, "redirects=3"),
    ({"max_body_bytes": 1_000}, "bytes=1000"),
    ({"detect_missing_page": False}, "missing=False"),
    ({"detect_walls": False}, "walls=False"),
    ({"on_access_denied": AccessResult.RESTRICTED}, "denied=restricted"),
    ({"on_too_many_requests": AccessResult.UNAVAILABLE}, "many=unavailable"),
    ({"on_too_many_redirects": AccessResult.UNREACHABLE}, "hops=unreachable"),
    ({"after_unreachable_limit": AfterUnreachableLimit.ALLOW}, "limit=allow"),
    (
        {"detect_missing_page": False, "address_guard": AddressGuard.PUBLIC_ONLY},
        "guard=public-only missing=False",
    ),
]


@pytest.mark.parametrize(("fields", "terms"), TERMS, ids=[text for _, text in TERMS])
def test_terms_list_what_differs_from_the_default(
    fields: dict[str, Any], terms: str
) -> None:
    """The keys in existing stores contain them, so they never change."""
    assert terms_of(Policy(**fields)) == terms


def test_durations_and_days_of_evidence_are_not_terms() -> None:
    """Checkers that differ only in these fields can share entries."""
    times = [
        field.name for field in dataclasses.fields(Policy) if "float" in str(field.type)
    ]
    numbers: dict[str, Any] = dict.fromkeys(times, 100)

    assert terms_of(Policy(**numbers, days_of_evidence=100)) == ""


def test_key_is_the_origin_followed_by_any_terms() -> None:
    assert key_of(ORIGIN, "") == ORIGIN
    assert key_of(ORIGIN, "guard=off") == f"{ORIGIN} guard=off"


COPY = answer()
MISSING = answer(AccessResult.UNAVAILABLE)
RESTRICTED = answer(AccessResult.RESTRICTED)
REFUSED = answer(AccessResult.REFUSED)


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
