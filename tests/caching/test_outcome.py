"""Each outcome's access result (RFC 9309 §2.3.1), and the only table of statuses."""

from __future__ import annotations

from typing import Any

import pytest

from robotsgate.caching._outcome import (
    BYTES_TO_READ,
    FailureKind,
    Outcome,
    access_result,
    fault,
    is_evidence,
    is_wall,
    says_not_found,
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


@cases("outcome by_default exceptions", {
    "200 with an HTML page is successful":
        (answered(body=NOT_FOUND_PAGE), SUCCESSFUL, {}),
    "429 with a not-found page is still 429":
        (answered(429, body=NOT_FOUND_PAGE), UNREACHABLE, {"rfc9309": UNAVAILABLE}),
    **{f"{status} with a not-found page is unavailable if pages are read":
        (answered(status, body=NOT_FOUND_PAGE), UNAVAILABLE, NO_PAGES)
        for status in (500, 502, 504, 599)},
    **{f"{status} with a not-found page is unreachable":
        (answered(status, body=NOT_FOUND_PAGE), UNREACHABLE, {})
        for status in (103, 206, 304, 307, 407, 503, 600)},
    "500 with a not-found page and Retry-After is unreachable":
        (answered(500, body=NOT_FOUND_PAGE, retry_after="1"), UNREACHABLE, {}),
    "500 with a valid robots.txt as its body is unreachable":
        (answered(500, body=RULES), UNREACHABLE, {}),
    "too many redirects are unavailable except under strict":
        (too_many_redirects(), UNAVAILABLE, {"strict": UNREACHABLE}),
    **{f"{kind.value} failure is unreachable": (failed(kind), UNREACHABLE, {})
        for kind in FailureKind if kind is not FailureKind.ADDRESS_REFUSED},
    "a bot wall is unreachable": (answered(202, is_wall=True), UNREACHABLE, {}),
    "an address rejected by the guard is refused":
        (failed(FailureKind.ADDRESS_REFUSED), REFUSED, {}),
})  # fmt: skip
def test_access_result_matches_the_table(
    outcome: Outcome, by_default: AccessResult, exceptions: dict[str, AccessResult]
) -> None:
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


SHOP = "https://www.example-shop.co.uk:8443"

MISSING = {
    "title": "<title>Not found</title>",
    "first heading": "<h1>Page not found</h1>",
    "the number alone": "<title>404</title>",
    "the number before a period": "<h1>404.</h1>",
    "the number and an apology": "<title>Error 404: oops</title>",
    "the number and its name": "<title>404 Not Found</title>",
    "the name in parentheses": "<title>Error 404 (Not Found)!!1</title>",
    "the site's name after it": "<title>Page not found | Example Shop</title>",
    "the site's name before it": "<title>Example Shop - Page not found</title>",
    "a status and the site's name": "<title>500 | Not found | Example Shop</title>",
    "a dash": "<title>Page not found \u2013 Example Shop</title>",
    "an entity": "<title>Page not found &mdash; Example Shop</title>",
    "a sentence": "<h1>Sorry, the requested page could not be found.</h1>",
    "a whole sentence": "<h1>The requested URL was not found</h1>",
    "only heading": "<title>Example Shop</title><h1>No such page</h1>",
    "title and heading": "<title>404</title><h1>Oops!</h1>",
    "the host": "<title>Not found - example-shop.co.uk</title>",
    "the status received": "<title>Error 500: page not found</title>",
    "another status for a missing page": "<title>410 | Page not found</title>",
    "upper case": "<TITLE>NOT FOUND</TITLE>",
    "mixed case": "<Title>Not found</tITLE>",
    "attributes": '<h1 class="big">Not found</h1>',
    "attributes on several lines": "<h1\n\tid=x\r\n>Not found</h1>",
    "whitespace": "<h1>\n  Not\n  found\n</h1 >",
    "an element inside": "<h1><b>Not</b> found</h1>",
    "straight apostrophe": "<title>Page doesn't exist</title>",
    "curly apostrophe": "<title>This page doesn\u2019t exist</title>",
    "apostrophe as an entity": "<title>This page doesn&#8217;t exist</title>",
    "does not exist": "<title>Page does not exist</title>",
    "no longer exists": "<title>Page no longer exists</title>",
    "invalid bytes after it": "<meta charset=utf-8><title>404</title><p>\udcff\udcfe",
}

OTHER = {
    "empty page": "",
    "plain text": "Not found",
    "in a comment": "<!-- <title>Not found</title> --><title>Down</title>",
    "in a script": "<script>x = '<title>Not found</title>'</script>",
    "in a text field": "<textarea><title>Not found</title></textarea>",
    "in a heading without its end": "<h1>Not found<p>Down</p>",
    "only in the body": "<title>Shop</title><p>Not found</p>",
    "a lesser heading": "<h2>Not found</h2>",
    "only in second heading": "<h1>Down</h1><h1>Not found</h1>",
    "unclosed title": "<title>Not found",
    "cut inside the tag": "<title",
    "cut inside an attribute": "<title lang=en",
    "only in an attribute": '<h1 title="Not found">Sorry</h1>',
    "a tag that begins like a heading": "<h10>Not found</h10>",
    "a tag that begins like title": "<titles>Not found</titles>",
    "another error": "<title>Service unavailable</title>",
    "another number": "<title>Error 503</title>",
    "the number split in two": "<title>40 4</title>",
    "an empty title": "<title></title>",
    # If these counted, an outage page could open the whole origin.
    "a backend": "<title>Backend not found</title>",
    "a host after a status": "<title>502 | Upstream host not found</title>",
    "a database": "<h1>Error: database connection not found</h1>",
    "a reference number": "<title>503 (reference 8404512)</title>",
    "a guide to the error": "<title>How to fix 404 not found errors</title>",
    "more than a name next to it": "<title>502 Bad Gateway | app-3 | Not found</title>",
    "an incident": "<title>503 (incident 404)</title>",
    "a status with its own phrase": "<title>500 Internal Server Error: 404</title>",
    "the phrase of another status": "<title>502 Bad Gateway - not found</title>",
    "words of an outage": "<title>Gateway Timeout: 404 not found</title>",
    "one word of an outage": "<title>Backend: not found</title>",
    "an unknown host": "<title>Unknown host: not found</title>",
    "maintenance": "<title>Maintenance: page not found</title>",
    "another status": "<title>502 | Page not found</title>",
    "another site": "<title>Page not found | Other Shop</title>",
    "a part of the name": "<title>Shop: not found</title>",
    "the public suffix": "<title>co.uk: not found</title>",
    "a title that says something else":
        "<title>502 Bad Gateway</title><h1>Not found</h1>",
    "a heading that says something else":
        "<title>Not found</title><h1>Database down</h1>",
    "a decimal": "<title>Down since 4.404</title>",
}  # fmt: skip


def is_missing(page: bytes) -> bool:
    return says_not_found(page, status=500, origin=SHOP)


@pytest.mark.parametrize("page", MISSING.values(), ids=MISSING)
def test_not_found_page_is_recognized(page: str) -> None:
    assert is_missing(page.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("page", OTHER.values(), ids=OTHER)
def test_other_page_is_not_a_not_found_page(page: str) -> None:
    assert not is_missing(page.encode())


def test_not_found_page_in_utf_16_is_not_recognized() -> None:
    assert not is_missing("<title>Not found</title>".encode("utf-16"))


@pytest.mark.parametrize("origin", [
    "http://intranet", "http://127.0.0.1:80", "http://[::1]", "https://x.com",
])  # fmt: skip
def test_host_without_a_label_of_four_letters_is_not_a_site_name(origin: str) -> None:
    page = b"<title>Intranet: not found</title>"

    assert not says_not_found(page, status=500, origin=origin)


@cases("beyond is_recognized", {
    "all of it": (0, True),
    "the end tag is past the limit": (len("</title>"), False),
    "the phrase is cut off": (len("d</title>"), False),
    "all of it is past the limit": (len("<title>Not found</title>"), False),
})  # fmt: skip
def test_phrase_is_recognized_only_in_the_first_four_kibibytes(
    *, beyond: int, is_recognized: bool
) -> None:
    tag = b"<title>Not found</title>"

    page = b" " * (4_096 + beyond - len(tag)) + tag

    assert BYTES_TO_READ == 4_096
    assert is_missing(page) is is_recognized
