from __future__ import annotations

import dataclasses
import math
from datetime import timedelta
from typing import Any

import pytest

from robotsgate.caching._policy import (
    AccessResult,
    AddressGuard,
    AfterUnreachableLimit,
    Policy,
    terms_of,
)
from tests.tables import cases

from .builders import DAY, HOUR, MINUTE

ANY = None  # any value of the same type as the default
ZERO, ABOVE_ZERO, ONE = "of 0 or more", "above 0", "of 1 or more"
FIELDS: dict[str, tuple[object, str | None]] = {
    "default_lifetime": (DAY, ZERO),
    "min_lifetime": (HOUR, ZERO),
    "max_lifetime": (7 * DAY, ZERO),
    "stale_window": (30 * DAY, ZERO),
    "unreachable_limit": (30 * DAY, ZERO),
    "unreachable_limit_without_copy": (None, ZERO),
    "outage_grace": (0.0, ZERO),
    "after_unreachable_limit": (AfterUnreachableLimit.ALLOW_IF_ANSWERING, ANY),
    "days_of_evidence": (5, ONE),
    "retry_initial": (MINUTE, ABOVE_ZERO),
    "retry_factor": (2.0, ONE),
    "retry_max": (HOUR, ABOVE_ZERO),
    "retry_initial_503": (30.0, ABOVE_ZERO),
    "retry_after_max": (DAY, ABOVE_ZERO),
    "max_redirects": (5, ZERO),
    "fetch_deadline": (30.0, ABOVE_ZERO),
    "connect_timeout": (10.0, ABOVE_ZERO),
    "read_timeout": (10.0, ABOVE_ZERO),
    "store_timeout": (5.0, ABOVE_ZERO),
    "max_body_bytes": (512_000, ZERO),
    "detect_missing_page": (True, ANY),
    "detect_walls": (True, ANY),
    "on_access_denied": (AccessResult.UNAVAILABLE, ANY),
    "on_too_many_requests": (AccessResult.UNREACHABLE, ANY),
    "on_too_many_redirects": (AccessResult.UNAVAILABLE, ANY),
    "address_guard": (AddressGuard.REDIRECTS, ANY),
    "allowed_networks": ((), ANY),
}
"""The default and lower bound of each field."""

DEFAULTS = {name: default for name, (default, _) in FIELDS.items()}
NUMBERS = {name: lowest for name, (_, lowest) in FIELDS.items() if lowest}
WHOLE_NUMBERS = [name for name, default in DEFAULTS.items() if type(default) is int]
ACCESS_RESULTS = [
    name for name, default in DEFAULTS.items() if isinstance(default, AccessResult)
]


def policy_with(name: str, value: object) -> Policy:
    fields: dict[str, Any] = {name: value}
    return Policy(**fields)


def differences_from_default(policy: Policy) -> dict[str, object]:
    defaults = dataclasses.asdict(Policy())
    return {
        name: value
        for name, value in dataclasses.asdict(policy).items()
        if value != defaults[name]
    }


def test_default_policy_matches_the_table_in_the_design() -> None:
    assert dataclasses.asdict(Policy()) == DEFAULTS


@cases("policy differences", {
    "google_today disallows for 12 hours, then uses the copy or allows":
        (Policy.google_today(),
        {"outage_grace": 12 * HOUR, "unreachable_limit_without_copy": 12 * HOUR,
        "detect_walls": False}),
    "google_2021 disallows for 30 days, then uses the last copy":
        (Policy.google_2021(), {"outage_grace": 30 * DAY, "detect_walls": False,
        "after_unreachable_limit": AfterUnreachableLimit.LAST_COPY}),
    "rfc9309 is google_2021, except for lifetimes, 429 and pages":
        (Policy.rfc9309(), {"outage_grace": 30 * DAY,
        "after_unreachable_limit": AfterUnreachableLimit.LAST_COPY, "max_lifetime": DAY,
        "detect_missing_page": False, "detect_walls": False,
        "on_too_many_requests": AccessResult.UNAVAILABLE}),
    "strict disallows whatever is not clearly allowed":
        (Policy.strict(), {"after_unreachable_limit": AfterUnreachableLimit.DISALLOW,
        "detect_missing_page": False, "on_access_denied": AccessResult.RESTRICTED,
        "on_too_many_redirects": AccessResult.UNREACHABLE}),
})  # fmt: skip
def test_preset_differs_from_the_default_only_in_these_fields(
    policy: Policy, differences: dict[str, object]
) -> None:
    assert differences_from_default(policy) == differences


@pytest.mark.parametrize(("lowest", "value", "error"), [
    *[(lowest, value, TypeError)
        for lowest in (ZERO, ABOVE_ZERO, ONE)
        for value in ("60", True, b"60", (60,), 1 + 0j)],
    *[(lowest, value, ValueError)
        for lowest in (ZERO, ABOVE_ZERO, ONE)
        # An OverflowError for the last one would not name the field.
        for value in (math.nan, math.inf, -math.inf, -1, -0.5, -1e300, 10**400)],
    *[(ABOVE_ZERO, value, ValueError) for value in (0, 0.0, -0.0)],
    *[(ONE, value, ValueError) for value in (0, math.nextafter(1, 0))],
], ids=lambda value: repr(value)[:30])  # fmt: skip
def test_number_of_the_wrong_type_or_out_of_range_is_refused_naming_the_field(
    lowest: str, value: object, error: type[Exception]
) -> None:
    bound = f".*{lowest}" if error is ValueError else ""
    for name in [name for name, own in NUMBERS.items() if own == lowest]:
        with pytest.raises(error, match=name + bound) as caught:
            policy_with(name, value)

        assert repr(value) in str(caught.value)


def test_duration_can_be_a_timedelta() -> None:
    durations = [
        name
        for name, default in DEFAULTS.items()
        if isinstance(default, float | None) and name != "retry_factor"
    ]
    policy = Policy(**dict.fromkeys(durations, timedelta(minutes=2)))  # type: ignore[arg-type] # any field

    values = dataclasses.asdict(policy)
    assert {name: values[name] for name in durations} == dict.fromkeys(durations, 120.0)
    assert all(type(values[name]) is float for name in durations)


@pytest.mark.parametrize(("name", "value", "error"), [
    ("retry_factor", timedelta(2), TypeError),
    ("max_redirects", timedelta(2), TypeError),
    ("fetch_deadline", timedelta(0), ValueError),
    ("stale_window", timedelta(-1), ValueError),
    ("stale_window", timedelta, TypeError),
])  # fmt: skip
def test_timedelta_is_refused_where_it_is_no_duration_or_too_short(
    name: str, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error, match=name):
        policy_with(name, value)


def test_lowest_value_is_accepted() -> None:
    values = {name: int(own == ONE) for name, own in NUMBERS.items()}
    for name, value in values.items():
        if NUMBERS[name] != ABOVE_ZERO:
            assert getattr(policy_with(name, value), name) == value


def test_none_is_accepted_only_for_the_limit_without_copy() -> None:
    assert Policy(unreachable_limit_without_copy=None) == Policy()
    with pytest.raises(TypeError, match="unreachable_limit to be a number, got None"):
        policy_with("unreachable_limit", None)


def test_default_min_lifetime_is_lowered_to_a_shorter_max_lifetime() -> None:
    assert Policy(max_lifetime=600).min_lifetime == 600
    assert dataclasses.replace(Policy(), max_lifetime=600).min_lifetime == 600
    assert Policy(min_lifetime=60, max_lifetime=600).min_lifetime == 60


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_float_is_refused_for_counts(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}.*int.*5\.0"):
        policy_with(name, 5.0)


@pytest.mark.parametrize(("name", "kind", "values"), [
    ("detect_missing_page", "bool", [0, 1, None, "yes"]),
    ("after_unreachable_limit", "AfterUnreachableLimit",
        ["allow", None, True, AccessResult.UNAVAILABLE, AfterUnreachableLimit]),
    ("address_guard", "AddressGuard", ["public-only", None, False]),
    *[(name, "AccessResult", ["unavailable", None, 404, AddressGuard.OFF])
        for name in ACCESS_RESULTS],
])  # fmt: skip
def test_choice_must_have_the_right_type(
    name: str, kind: str, values: list[object]
) -> None:
    for value in values:
        with pytest.raises(TypeError, match=f"{name}.*{kind}") as caught:
            policy_with(name, value)

        assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", ACCESS_RESULTS)
@pytest.mark.parametrize("value", [AccessResult.SUCCESSFUL, AccessResult.REFUSED])
def test_only_unavailable_unreachable_or_restricted_can_be_chosen(
    name: str, value: AccessResult
) -> None:
    with pytest.raises(ValueError, match=rf"{name}.*{value.name}"):
        policy_with(name, value)


@pytest.mark.parametrize(("low", "high", "fields"), [
    ("min_lifetime", "max_lifetime", {"min_lifetime": 61, "max_lifetime": 60}),
    ("retry_initial", "retry_max", {"retry_initial": 61, "retry_max": 60}),
    ("retry_initial_503", "retry_max", {"retry_initial_503": 61, "retry_max": 60}),
    ("retry_initial", "retry_after_max", {"retry_initial": 61, "retry_after_max": 60}),
])  # fmt: skip
def test_lower_bound_above_upper_bound_is_refused(
    low: str, high: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=f"{low} to be at most {high}, got 61 and 60"):
        Policy(**fields)


def test_equal_bounds_are_accepted() -> None:
    policy = Policy(
        min_lifetime=60,
        max_lifetime=60,
        retry_initial=60,
        retry_initial_503=60,
        retry_max=60,
        retry_after_max=60,
    )

    assert policy.retry_max == 60


def test_networks_are_stored_in_canonical_form() -> None:
    networks = ["10.0.0.0/255.0.0.0", "FD00:0::/32", "127.0.0.1"]

    policy = Policy(allowed_networks=networks)

    assert policy.allowed_networks == ("10.0.0.0/8", "fd00::/32", "127.0.0.1/32")
    assert hash(policy) == hash(Policy(allowed_networks=policy.allowed_networks))


@pytest.mark.parametrize(
    "value", ["10.0.0.0/8", b"10.0.0.0/8", None, 10, [10], [b"10.0.0.0/8"]]
)
def test_networks_must_be_an_iterable_of_strings(value: object) -> None:
    with pytest.raises(TypeError, match=r"expected .*network"):
        policy_with("allowed_networks", value)


@pytest.mark.parametrize("text", ["", "example.com", "10.0.0.1/8", "::/129", "1.2.3"])
def test_string_that_is_not_a_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a network") as caught:
        Policy(allowed_networks=[text])

    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(("fields", "terms"), [
    ({}, ""), ({"address_guard": AddressGuard.OFF}, "guard=off"),
    ({"allowed_networks": ["10.0.0.0/8", "FD00::/32"]},
        "networks=10.0.0.0/8,fd00::/32"),
    ({"max_redirects": 3}, "redirects=3"), ({"max_body_bytes": 1_000}, "bytes=1000"),
    ({"detect_missing_page": False}, "missing=False"),
    ({"detect_walls": False}, "walls=False"),
    ({"on_access_denied": AccessResult.RESTRICTED}, "denied=restricted"),
    ({"on_too_many_requests": AccessResult.UNAVAILABLE}, "many=unavailable"),
    ({"on_too_many_redirects": AccessResult.UNREACHABLE}, "hops=unreachable"),
    ({"after_unreachable_limit": AfterUnreachableLimit.ALLOW}, "limit=allow"),
    ({"detect_missing_page": False, "address_guard": AddressGuard.PUBLIC_ONLY},
        "guard=public-only missing=False"),
], ids=str)  # fmt: skip
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
