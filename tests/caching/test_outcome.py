"""Rows of RFC 9309 §2.3.1: what each answer of a server means."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from robotsgate.caching._access import AccessResult
from robotsgate.caching._outcome import (
    Answered,
    BrokenRedirect,
    Failed,
    FailureKind,
    Outcome,
    access_result,
)
from robotsgate.caching._policy import Policy

from .builders import PRESETS, RULES, answered, broken_redirect, failed

SUCCESSFUL = AccessResult.SUCCESSFUL
UNAVAILABLE = AccessResult.UNAVAILABLE
UNREACHABLE = AccessResult.UNREACHABLE
RESTRICTED = AccessResult.RESTRICTED

NOT_FOUND_PAGE = b"<html><title>Not found</title></html>"

# Under the default policy, with the presets that differ.
ROWS: dict[str, tuple[Outcome, AccessResult, dict[str, AccessResult]]] = {
    **{
        f"{status} is successful": (answered(status), SUCCESSFUL, {})
        for status in (200, 201, 203, 204, 206, 226, 299)
    },
    "200 with an HTML page is successful": (
        answered(200, body=NOT_FOUND_PAGE),
        SUCCESSFUL,
        {},
    ),
    **{
        f"{status} is unavailable": (answered(status), UNAVAILABLE, {})
        for status in (400, 402, 404, 405, 410, 418, 428, 430, 451, 499)
    },
    **{
        f"{status} is unavailable, but restricted for a strict policy": (
            answered(status),
            UNAVAILABLE,
            {"strict": RESTRICTED},
        )
        for status in (401, 403)
    },
    "429 is unreachable, but a 4xx to the letter of the standard": (
        answered(429),
        UNREACHABLE,
        {"rfc9309": UNAVAILABLE},
    ),
    "429 with a page that says not found is still 429": (
        answered(429, body=NOT_FOUND_PAGE),
        UNREACHABLE,
        {"rfc9309": UNAVAILABLE},
    ),
    **{
        f"{status} is unreachable": (answered(status), UNREACHABLE, {})
        for status in (500, 501, 502, 503, 504, 511, 599)
    },
    **{
        f"{status} with a page that says not found is unavailable, if pages are read": (
            answered(status, body=NOT_FOUND_PAGE),
            UNAVAILABLE,
            {"rfc9309": UNREACHABLE, "strict": UNREACHABLE},
        )
        for status in (500, 503, 599)
    },
    "500 with a valid robots.txt for a body is unreachable": (
        answered(500, body=RULES),
        UNREACHABLE,
        {},
    ),
    "500 with not found in the body of its page only is unreachable": (
        answered(500, body=b"<title>Oops</title><p>Not found</p>"),
        UNREACHABLE,
        {},
    ),
    **{
        f"{status} as the final status is unreachable": (
            answered(status),
            UNREACHABLE,
            {},
        )
        for status in (100, 101, 103, 199, 600, 999)
    },
    "600 with a page that says not found is unreachable": (
        answered(600, body=NOT_FOUND_PAGE),
        UNREACHABLE,
        {},
    ),
    "304, for which nobody asked, is unreachable": (answered(304), UNREACHABLE, {}),
    **{
        f"{error} is unavailable, but unreachable for a strict policy": (
            broken_redirect(error),
            UNAVAILABLE,
            {"strict": UNREACHABLE},
        )
        for error in (
            "a sixth redirect",
            "a redirect loop",
            "a redirect without Location",
            "a redirect to another scheme",
        )
    },
    **{
        f"failure in {kind.value} is unreachable": (failed(kind), UNREACHABLE, {})
        for kind in FailureKind
    },
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("row", ROWS)
def test_access_result_is_that_of_the_table(row: str, preset: str) -> None:
    outcome, by_default, exceptions = ROWS[row]

    found = access_result(outcome, PRESETS[preset])

    assert found is exceptions.get(preset, by_default)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_status_is_unreachable_unless_2xx_or_4xx(preset: str) -> None:
    policy = PRESETS[preset]
    others = [*range(100, 200), *range(300, 400), *range(500, 1_000)]

    found = {access_result(answered(status), policy) for status in others}

    assert found == {UNREACHABLE}


def test_detection_of_missing_pages_can_be_turned_off() -> None:
    outcome = answered(503, body=NOT_FOUND_PAGE)

    found = access_result(outcome, Policy(detect_missing_page=False))

    assert found is UNREACHABLE


@pytest.mark.parametrize("chosen", [UNAVAILABLE, UNREACHABLE, RESTRICTED])
@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("on_access_denied", answered(401)),
        ("on_access_denied", answered(403)),
        ("on_too_many_requests", answered(429)),
        ("on_broken_redirect", broken_redirect()),
    ],
)
def test_policy_chooses_what_an_outcome_counts_as(
    name: str, outcome: Outcome, chosen: AccessResult
) -> None:
    fields: dict[str, Any] = {name: chosen}
    policy = Policy(**fields)

    assert access_result(outcome, policy) is chosen


def test_failures_compare_without_their_cause() -> None:
    one = Failed(kind=FailureKind.TLS, error="expired", cause=OSError("one"))
    other = Failed(kind=FailureKind.TLS, error="expired", cause=OSError("other"))

    assert one == other


def test_headers_of_two_answers_are_not_shared() -> None:
    assert Answered(status=200).headers is not Answered(status=200).headers
    assert BrokenRedirect(status=302, error="a loop").headers == {}


@pytest.mark.parametrize(
    "outcome",
    [answered(), failed(), broken_redirect()],
    ids=["Answered", "Failed", "BrokenRedirect"],
)
def test_outcome_is_frozen(outcome: Outcome) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcome.redirects = 3  # type: ignore[misc]  # what must not work
