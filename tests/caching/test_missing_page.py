from __future__ import annotations

import pytest

from robotsgate.caching._missing_page import BYTES_TO_READ, says_not_found


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(b"<title>Not found</title>", id="title"),
        pytest.param(b"<h1>Page not found</h1>", id="first heading"),
        pytest.param(b"<title>404</title>", id="the number alone"),
        pytest.param(b"<title>Error 404: oops</title>", id="the number in a sentence"),
        pytest.param(b"<h1>404.</h1>", id="the number before a period"),
        pytest.param(b"<title>Shop</title><h1>No such page</h1>", id="only heading"),
        pytest.param(b"<title>NOT FOUND</title>", id="upper case text"),
        pytest.param(b"<TITLE>Not found</TITLE>", id="upper case tag"),
        pytest.param(b"<Title>Not found</tITLE>", id="mixed case tag"),
        pytest.param(b'<h1 class="big">Not found</h1>', id="attribute in the tag"),
        pytest.param(b"<h1\n\tid=x\r\n>Not found</h1>", id="attributes over lines"),
        pytest.param(b"<h1>\n  Not found\n</h1 >", id="blanks around text and tag"),
        pytest.param(b"<h1><b>Not found</b></h1>", id="an element inside"),
        pytest.param(b"<title>Page doesn't exist</title>", id="straight apostrophe"),
        pytest.param(
            "<title>This page doesn\u2019t exist</title>".encode(),
            id="curly apostrophe",
        ),
        pytest.param(b"<title>Page does not exist</title>", id="does not exist"),
        pytest.param(b"<title>Page no longer exists</title>", id="no longer exists"),
        pytest.param(
            b"<!doctype html><html><head><meta charset=utf-8>"
            b"<title>Not found</title></head><body>\xff\xfe</body></html>",
            id="a whole page with invalid bytes",
        ),
    ],
)
def test_page_that_says_so_is_missing(page: bytes) -> None:
    assert says_not_found(page)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(b"", id="empty page"),
        pytest.param(b"Not found", id="plain text"),
        pytest.param(b"<title>Shop</title><p>Not found</p>", id="only in the body"),
        pytest.param(b"<h2>Not found</h2>", id="a lesser heading"),
        pytest.param(b"<h1>Down</h1><h1>Not found</h1>", id="only in second heading"),
        pytest.param(b"<title>Not found", id="title without end"),
        pytest.param(b"<title", id="cut inside the tag"),
        pytest.param(b"<title lang=en", id="cut inside an attribute"),
        pytest.param(b'<h1 title="Not found">Sorry</h1>', id="only in an attribute"),
        pytest.param(b"<h10>Not found</h10>", id="a tag that begins like a heading"),
        pytest.param(b"<titles>Not found</titles>", id="a tag that begins like title"),
        pytest.param(b"<title>Service unavailable</title>", id="another error"),
        pytest.param(b"<title>Error 503</title>", id="another number"),
        pytest.param(b"<title>40 4</title>", id="the number in pieces"),
        pytest.param(
            "<title>Seite nicht verf\u00fcgbar</title>".encode("utf-16"),
            id="another encoding",
        ),
    ],
)
def test_page_that_does_not_say_so_is_not_missing(page: bytes) -> None:
    assert not says_not_found(page)


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(b"503 (reference 8404512)", id="a reference number"),
        pytest.param(b"503 (incident 12404)", id="an incident number"),
        pytest.param(b"Down since 4.40404", id="a decimal"),
    ],
)
def test_404_inside_a_longer_number_says_nothing(title: bytes) -> None:
    """An outage page with a number in its title would open the whole origin."""
    assert not says_not_found(b"<title>" + title + b"</title>")


def test_phrase_within_the_bytes_that_are_read_counts() -> None:
    tag = b"<title>Not found</title>"

    page = b" " * (BYTES_TO_READ - len(tag)) + tag

    assert says_not_found(page)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(0, id="the tag is beyond"),
        pytest.param(len(b"<title>Not foun"), id="the phrase is cut"),
        pytest.param(len(b"<title>Not found"), id="the end tag is beyond"),
    ],
)
def test_phrase_beyond_the_bytes_that_are_read_does_not_count(behind: int) -> None:
    page = b" " * (BYTES_TO_READ - behind) + b"<title>Not found</title>"

    assert not says_not_found(page)


def test_four_kibibytes_are_read() -> None:
    assert BYTES_TO_READ == 4_096
