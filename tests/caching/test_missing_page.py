"""5xx pages that mean "not found", and pages that merely mention it."""

from __future__ import annotations

import pytest

from robotsgate.caching._outcome import BYTES_TO_READ, says_not_found
from tests.tables import cases

ORIGIN = "https://www.example-shop.co.uk:8443"

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
    return says_not_found(page, status=500, origin=ORIGIN)


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
