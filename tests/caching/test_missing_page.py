"""Pages of a 5xx that say "not found", and pages that only speak of it."""

from __future__ import annotations

import pytest

from robotsgate.caching._missing_page import BYTES_TO_READ, says_not_found

MISSING = {
    "title": "<title>Not found</title>",
    "first heading": "<h1>Page not found</h1>",
    "the number alone": "<title>404</title>",
    "the number before a period": "<h1>404.</h1>",
    "the number, an apology": "<title>Error 404: oops</title>",
    "the number and its name": "<title>404 Not Found</title>",
    "the name in parentheses": "<title>Error 404 (Not Found)!!1</title>",
    "name of the site behind": "<title>Page not found | Example Shop</title>",
    "name of the site before": "<title>Example Shop - Page not found</title>",
    "a status, the name of the site": "<title>500 | Not found | Example</title>",
    "a dash": "<title>Page not found \u2013 Example</title>",
    "an entity": "<title>Page not found &mdash; Example</title>",
    "a sentence": "<h1>Sorry, the requested page could not be found.</h1>",
    "a whole sentence": "<h1>The requested URL was not found</h1>",
    "only heading": "<title>Shop</title><h1>No such page</h1>",
    "upper case": "<TITLE>NOT FOUND</TITLE>",
    "mixed case": "<Title>Not found</tITLE>",
    "attributes": '<h1 class="big">Not found</h1>',
    "attributes over lines": "<h1\n\tid=x\r\n>Not found</h1>",
    "blanks": "<h1>\n  Not\n  found\n</h1 >",
    "an element inside": "<h1><b>Not</b> found</h1>",
    "straight apostrophe": "<title>Page doesn't exist</title>",
    "curly apostrophe": "<title>This page doesn\u2019t exist</title>",
    "apostrophe as an entity": "<title>This page doesn&#8217;t exist</title>",
    "does not exist": "<title>Page does not exist</title>",
    "no longer exists": "<title>Page no longer exists</title>",
    "invalid bytes behind": "<meta charset=utf-8><title>404</title><p>\udcff\udcfe",
}

OTHER = {
    "empty page": "",
    "plain text": "Not found",
    "only in the body": "<title>Shop</title><p>Not found</p>",
    "a lesser heading": "<h2>Not found</h2>",
    "only in second heading": "<h1>Down</h1><h1>Not found</h1>",
    "title without end": "<title>Not found",
    "cut inside the tag": "<title",
    "cut inside an attribute": "<title lang=en",
    "only in an attribute": '<h1 title="Not found">Sorry</h1>',
    "a tag that begins like a heading": "<h10>Not found</h10>",
    "a tag that begins like title": "<titles>Not found</titles>",
    "another error": "<title>Service unavailable</title>",
    "another number": "<title>Error 503</title>",
    "the number in pieces": "<title>40 4</title>",
    "an empty title": "<title></title>",
    # An outage page with such a title would open the whole origin.
    "a backend": "<title>Backend not found</title>",
    "a host behind a status": "<title>502 | Upstream host not found</title>",
    "a database": "<h1>Error: database connection not found</h1>",
    "a reference number": "<title>503 (reference 8404512)</title>",
    "a guide to it": "<title>How to fix 404 not found errors</title>",
    "more than a name beside it": "<title>502 Bad Gateway | app-3 | Not found</title>",
    "an incident": "<title>503 (incident 404)</title>",
    "a decimal": "<title>Down since 4.404</title>",
}


@pytest.mark.parametrize("page", MISSING.values(), ids=MISSING)
def test_page_that_says_so_is_missing(page: str) -> None:
    assert says_not_found(page.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("page", OTHER.values(), ids=OTHER)
def test_page_that_does_not_say_so_is_not_missing(page: str) -> None:
    assert not says_not_found(page.encode())


def test_another_encoding_is_not_read() -> None:
    assert not says_not_found("<title>Not found</title>".encode("utf-16"))


@pytest.mark.parametrize(
    ("beyond", "is_read"),
    [
        (0, True),
        (len("</title>"), False),
        (len("d</title>"), False),
        (len("<title>Not found</title>"), False),
    ],
    ids=["all of it", "the end tag is beyond", "the phrase is cut", "all is beyond"],
)
def test_phrase_counts_within_four_kibibytes(*, beyond: int, is_read: bool) -> None:
    tag = b"<title>Not found</title>"

    page = b" " * (4_096 + beyond - len(tag)) + tag

    assert BYTES_TO_READ == 4_096
    assert says_not_found(page) is is_read
