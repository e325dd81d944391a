"""Values of crawl-delay, request-rate and sitemap records."""

from __future__ import annotations

import pytest

from robotsgate import Origin
from robotsgate.robotstxt import RequestRate
from robotsgate.robotstxt._records import (
    absolute_sitemaps,
    crawl_delay_seconds,
    is_absolute_url,
    is_usable_sitemap,
    request_rate,
    sitemap_urls,
)
from tests.tables import cases


@pytest.mark.parametrize(("value", "seconds"), [
    ("10", 10.0), ("0", 0.0), ("0.5", 0.5), (".5", 0.5), ("5.", 5.0), ("007", 7.0),
    ("", None), (".", None), ("-1", None), ("+1", None), ("1e3", None), ("inf", None),
    ("nan", None), ("1_0", None), ("1,5", None), ("1.2.3", None), ("10s", 10.0),
    ("1.5M", 90.0), ("1h", 3600.0), ("1d", 86400.0), ("s", None), ("10 s", None),
    ("10ss", None), ("1 0", None), ("\xb2", None), ("0x10", None),
    pytest.param("9" * 400, None, id="too large for a float"),
    pytest.param("9" * 5000, None, id="more digits than int accepts"),
])  # fmt: skip
def test_crawl_delay_is_a_plain_finite_number_with_an_optional_unit(
    value: str, seconds: float | None
) -> None:
    assert crawl_delay_seconds(value) == seconds


@pytest.mark.parametrize(("value", "expected"), [
    ("1/5", (1, 5.0)), ("1/10s", (1, 10.0)), ("30/1m", (30, 60.0)),
    ("9000/1d", (9000, 86400.0)), ("1m/5", None), ("1/2H", (1, 7200.0)),
    ("2/0.5", (2, 0.5)), ("1/5 0600-0845", (1, 5.0)), ("1.0/5", (1, 5.0)), ("", None),
    ("5", None), ("1/", None), ("/5", None), ("1/0", None), ("0/5", None),
    ("1/s", None), ("1.5/5", None), ("-1/5", None), ("1/-5", None), ("1/5x", None),
    ("1/5/2", None), ("a/b", None), ("inf/5", None), ("1/inf", None),
    pytest.param("1/" + "9" * 400, None, id="a period too large for a float"),
])  # fmt: skip
def test_request_rate_is_a_number_of_requests_per_period(
    value: str, expected: tuple[int, float] | None
) -> None:
    rate = expected and RequestRate(requests=expected[0], seconds=expected[1])

    assert request_rate(value) == rate


def test_request_rate_has_a_finite_period() -> None:
    """A finite number used to overflow once its unit was applied."""
    assert request_rate("1/" + "9" * 308 + "h") is None


@pytest.mark.parametrize(("value", "is_absolute"), [
    ("https://example.com/sitemap.xml", True), ("HTTP://example.com/s.xml", True),
    ("ftp://example.com/s.xml", True), ("/sitemap.xml", False), ("sitemap.xml", False),
    ("//example.com/s.xml", False), ("https://", False),
    ("gopher://example.com/s.xml", False), ("mailto:me@example.com", False),
    ("", False),
])  # fmt: skip
def test_sitemap_is_an_absolute_url(value: str, *, is_absolute: bool) -> None:
    assert is_absolute_url(value) is is_absolute


A, B = "https://a.example/1.xml", "http://b.example/2.xml"


@cases("value urls", {
    "one URL": (A, [A]),
    "a space between two": (f"{A} {B}", [A, B]),
    "spaces and tabs": (f"{A} \t {B}", [A, B]),
    "a comma": (f"{A},{B}", [A, B]),
    "a comma and a space": (f"{A} , {B}, ftp://c.example/3", [A, B, "ftp://c.example/3"]),
    "schemes in capitals": (f"{A.upper()} HTTP://b", [A.upper(), "HTTP://b"]),
    "a broken second URL": (f"{A} https://[::1/s", [A, "https://[::1/s"]),
    "words after the URL": (f"{A} for all", [f"{A} for all"]),
    "a space in a path": ("https://a.example/my map", ["https://a.example/my map"]),
    "a comma in a query": (f"{A}?x=1,2", [f"{A}?x=1,2"]),
    "a URL in a query": (f"{A}?u={B}", [f"{A}?u={B}"]),
    "a relative URL first": (f"/s.xml {B}", [f"/s.xml {B}"]),
    "a scheme twice": ("https://https://a.example", ["https://https://a.example"]),
    "nothing": ("", [""]),
})  # fmt: skip
def test_several_urls_on_a_line_each_begin_with_a_scheme(
    value: str, urls: list[str]
) -> None:
    assert sitemap_urls(value) == urls


def test_a_long_run_of_commas_is_split_in_linear_time() -> None:
    """Scanning the run from each of its commas would take minutes."""
    assert len(sitemap_urls(f"{A}{',' * 500_000}x")) == 1


@cases("url is_usable", {
    "a host with a dot": (A, True),
    "another host": ("http://cdn.example/s.xml", True),
    "an IPv4 address": ("http://127.0.0.1:8000/s.xml", True),
    "an IPv4 number": ("http://2130706433/s.xml", True),
    "an IPv6 address": ("http://[::1]/s.xml", True),
    "the origin's own host": ("http://intranet:8080/s.xml", True),
    "its own host, absolute": ("https://INTRANET./s.xml", True),
    "an international host": ("https://b\u00fccher.example/s.xml", True),
    "user and password": ("https://me:pw@a.example/s.xml", True),
    "FTP": ("ftp://a.example/s.xml", True),
    "a space in a path": ("https://a.example/my sitemap.xml", True),
    "a bracket that is not closed": ("https://[::1/s.xml", False),
    "a port above 65,535": ("https://a.example:99999/s.xml", False),
    "a port that is a word": ("https://a.example:port/s.xml", False),
    "a port of 5,000 digits": (f"https://a.example:{'9' * 5_000}/s.xml", False),
    "a superscript port": ("https://a.example:8\u00b2/s.xml", False),
    "a space in a host": ("https://a example.com/s.xml", False),
    "a space before a host": ("https:// a.example/s.xml", False),
    "a scheme twice": ("https://https://a.example/s.xml", False),
    "another host without a dot": ("https://localhost/s.xml", False),
    "a top-level domain": ("https://example./s.xml", False),
    "a wildcard": ("https://*/s.xml", False),
    "no host": ("https:///s.xml", False),
    "a backslash": ("https://a.example\\s.xml", False),
    "a relative URL": ("/s.xml", False),
    "another scheme": ("file://a.example/s.xml", False),
    "nothing": ("", False),
})  # fmt: skip
def test_sitemap_is_usable_if_its_host_could_exist(
    url: str, *, is_usable: bool
) -> None:
    """Crawlers ended at the others (scrapy#2390)."""
    assert is_usable_sitemap(url, Origin.from_url("http://intranet/")) is is_usable


def test_host_without_a_dot_is_not_usable_if_the_origin_is_unknown() -> None:
    assert not is_usable_sitemap("http://intranet/s.xml")


def test_sitemaps_are_separated_resolved_and_filtered() -> None:
    values = ["/a.xml", f"{A} {B}", "//cdn.example/c.xml", A, "https://[::1/s.xml"]

    assert absolute_sitemaps(values, Origin.from_url("https://a.example")) == (
        "https://a.example/a.xml", A, B, "https://cdn.example/c.xml",
    )  # fmt: skip
