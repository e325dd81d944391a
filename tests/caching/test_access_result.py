"""Each outcome's access result (RFC 9309 §2.3.1); the only table of statuses."""

from __future__ import annotations

from typing import Any

import pytest

from robotsgate.caching._outcome import (
    FailureKind,
    Outcome,
    access_result,
    fault,
    is_evidence,
    is_wall,
)
from robotsgate.caching._policy import AccessResult, Policy
from tests.tables import cases

from .builders import ORIGIN, PRESETS, RULES, answered, failed, too_many_redirects

SUCCESSFUL = AccessResult.SUCCESSFUL
UNAVAILABLE = AccessResult.UNAVAILABLE
UNREACHABLE = AccessResult.UNREACHABLE
RESTRICTED = AccessResult.RESTRICTED
REFUSED = AccessResult.REFUSED

NOT_FOUND_PAGE = b"<html><title>Not found</title></html>"
NO_PAGES = {"rfc9309": UNREACHABLE, "strict": UNREACHABLE}

# An outcome, its result under the default policy, and the presets that differ.
Row = tuple[Outcome, AccessResult, dict[str, AccessResult]]
ROWS: dict[str, Row] = {
    "200 with an HTML page is successful": (
        answered(body=NOT_FOUND_PAGE),
        SUCCESSFUL,
        {},
    ),
    "429 with a not-found page is still 429": (
        answered(429, body=NOT_FOUND_PAGE),
        UNREACHABLE,
        {"rfc9309": UNAVAILABLE},
    ),
    **{
        f"{status} with a not-found page is unavailable if pages are read": (
            answered(status, body=NOT_FOUND_PAGE),
            UNAVAILABLE,
            NO_PAGES,
        )
        for status in (500, 502, 504, 599)
    },
    **{
        f"{status} with a not-found page is unreachable": (
            answered(status, body=NOT_FOUND_PAGE),
            UNREACHABLE,
            {},
        )
        for status in (103, 206, 304, 307, 407, 503, 600)
    },
    "500 with a not-found page and Retry-After is unreachable": (
        answered(500, body=NOT_FOUND_PAGE, retry_after="1"),
        UNREACHABLE,
        {},
    ),
    "500 with a valid robots.txt as its body is unreachable": (
        answered(500, body=RULES),
        UNREACHABLE,
        {},
    ),
    "too many redirects are unavailable except under strict": (
        too_many_redirects(),
        UNAVAILABLE,
        {"strict": UNREACHABLE},
    ),
    **{
        f"{kind.value} failure is unreachable": (failed(kind), UNREACHABLE, {})
        for kind in FailureKind
        if kind is not FailureKind.ADDRESS_REFUSED
    },
    "a bot wall is unreachable": (answered(202, is_wall=True), UNREACHABLE, {}),
    "an address rejected by the guard is refused": (
        failed(FailureKind.ADDRESS_REFUSED),
        REFUSED,
        {},
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_access_result_matches_the_table(row: str) -> None:
    outcome, by_default, exceptions = ROWS[row]

    results = {
        preset: access_result(outcome, policy, origin=ORIGIN)
        for preset, policy in PRESETS.items()
    }

    assert results == dict.fromkeys(PRESETS, by_default) | exceptions


# The first range that contains a status applies.
STATUSES: list[tuple[range, AccessResult, dict[str, AccessResult]]] = [
    (range(206, 207), UNREACHABLE, {}), (range(200, 300), SUCCESSFUL, {}),
    (range(401, 402), UNAVAILABLE, {"strict": RESTRICTED}),
    (range(403, 404), UNAVAILABLE, {"strict": RESTRICTED}),
    (range(407, 408), UNREACHABLE, {}),
    (range(429, 430), UNREACHABLE, {"rfc9309": UNAVAILABLE}),
    (range(400, 500), UNAVAILABLE, {}), (range(100, 1_000), UNREACHABLE, {}),
]  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_every_status_has_the_access_result_of_its_range(preset: str) -> None:
    for status in range(100, 1_000):
        _, by_default, exceptions = next(row for row in STATUSES if status in row[0])

        result = access_result(answered(status), PRESETS[preset], origin=ORIGIN)

        assert (status, result) == (status, exceptions.get(preset, by_default))


@pytest.mark.parametrize("last_access", [None, *AccessResult])
def test_not_found_page_is_unavailable_unless_there_was_a_file(
    last_access: AccessResult | None,
) -> None:
    outcome = answered(500, body=NOT_FOUND_PAGE)

    result = access_result(outcome, Policy(), origin=ORIGIN, last_access=last_access)

    assert result is (UNREACHABLE if last_access is SUCCESSFUL else UNAVAILABLE)


@pytest.mark.parametrize("chosen", [UNAVAILABLE, UNREACHABLE, RESTRICTED])
@pytest.mark.parametrize(("name", "outcome"), [
    ("on_access_denied", answered(401)), ("on_access_denied", answered(403)),
    ("on_too_many_requests", answered(429)),
    ("on_too_many_redirects", too_many_redirects()),
])  # fmt: skip
def test_policy_field_sets_the_access_result(
    name: str, outcome: Outcome, chosen: AccessResult
) -> None:
    fields: dict[str, Any] = {name: chosen}

    assert access_result(outcome, Policy(**fields), origin=ORIGIN) is chosen


@pytest.mark.parametrize(("outcome", "without_network", "with_network"), [
    *[(answered(status), True, True) for status in (103, 206, 304, 500, 503, 600)],
    (too_many_redirects(), True, True), (answered(407), False, False),
    (answered(429), False, False), (answered(202, is_wall=True), False, False),
    *[(failed(kind), False, True) for kind in FailureKind],
    (fault(LookupError("a bug"), ()), False, False),
], ids=str)  # fmt: skip
def test_evidence_depends_on_the_status_and_whether_the_network_counts(
    *, outcome: Outcome, without_network: bool, with_network: bool
) -> None:
    assert is_evidence(outcome, counts_network=False) is without_network
    assert is_evidence(outcome, counts_network=True) is with_network


@cases("status body expected", {
    "202 with an HTML page": (202, NOT_FOUND_PAGE, True),
    "202 without a body": (202, b"", True),
    "205 with only the visitor's User-Agent line": (205, b"User-Agent: Bot", True),
    "202 with a file": (202, RULES, False),
    "205 with a file that allows everything": (205, b"User-agent: *\nDisallow:", False),
    "200 with an HTML page": (200, NOT_FOUND_PAGE, False),
    "203 with an HTML page": (203, NOT_FOUND_PAGE, False),
    "204": (204, b"", False),
    "403 with an HTML page": (403, NOT_FOUND_PAGE, False),
})  # fmt: skip
def test_wall_is_a_noncommittal_response_without_rules(
    *, status: int, body: bytes, expected: bool
) -> None:
    assert is_wall(status, body, Policy()) is expected
    assert not is_wall(status, body, Policy(detect_walls=False))


def test_comparing_failures_ignores_their_cause() -> None:
    one = Outcome(failure=FailureKind.TLS, error="expired", cause=OSError("one"))
    other = Outcome(failure=FailureKind.TLS, error="expired", cause=OSError("other"))

    assert one == other
