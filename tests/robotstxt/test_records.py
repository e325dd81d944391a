"""Values of crawl-delay, request-rate and sitemap records."""

from __future__ import annotations

import pytest

from robotsgate.robotstxt import RequestRate
from robotsgate.robotstxt._records import (
    crawl_delay_seconds,
    is_absolute_url,
    request_rate,
)


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
