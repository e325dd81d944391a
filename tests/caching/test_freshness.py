"""RFC 9309 §2.4, RFC 9111 §4.2 and §5.2, RFC 9110 §10.2.3."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._freshness import (
    CACHING_HEADERS,
    freshness_lifetime,
    http_date,
    retry_after,
    retry_delay,
)
from robotsgate.caching._policy import Policy
from tests.tables import cases

from .builders import DAY, HOUR, MINUTE, NOW, ORIGIN, PRESETS

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT = DAY
SHORTEST = MINUTE
LONGEST = 7 * DAY

JITTERED_MINUTE = 65.98034936981276
"""The first delay for `ORIGIN`, whose CRC-32 is 0.9967… of 2^32."""


def date(seconds_from_now: float) -> str:
    return formatdate(NOW + seconds_from_now, usegmt=True)


def lifetime(headers: dict[str, str], *, policy: Policy | None = None) -> float:
    policy = policy or Policy(min_lifetime=SHORTEST)
    return freshness_lifetime(headers, now=NOW, policy=policy)


def row(seconds: float, reason: str, **headers: str) -> pytest.ParameterSet:
    """A row: the expected lifetime, and headers with "_" for "-" in their names."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return pytest.param(fields, seconds, id=reason)


@pytest.mark.parametrize(("headers", "expected"), [
    row(DEFAULT, "no headers"), row(DEFAULT, "an empty header", cache_control=""),
    row(DEFAULT, "no lifetime", cache_control="public"),
    row(DEFAULT, "commas only", cache_control=" , ,, "),
    row(DEFAULT, "no value", cache_control="max-age"),
    row(DEFAULT, "Date and Age only", date=date(0), age="10"),
    row(600, "max-age", cache_control="max-age=600"),
    row(700, "s-maxage", cache_control="s-maxage=700"),
    row(700, "s-maxage, second", cache_control="max-age=600, s-maxage=700"),
    row(700, "s-maxage, first", cache_control="s-maxage=700, max-age=600"),
    row(600, "any case", cache_control="Max-Age=600"),
    row(600, "spaces", cache_control="public ,  max-age = 600 ,immutable"),
    row(600, "a quoted number", cache_control='max-age="600"'),
    row(600, "a quoted comma", cache_control='x="now, max-age=9", max-age=600'),
    row(600, "the first of two", cache_control="max-age=600, max-age=900"),
    row(600, "leading zeros", cache_control="max-age=0000000000000600"),
    row(600, "max-age first", cache_control="max-age=600", expires=date(5_000)),
    row(500, "minus Age", cache_control="max-age=600", age="100"),
    row(600, "Age with spaces", cache_control="s-maxage=700", age=" 100 "),
    row(500, "the first Age", cache_control="max-age=600", age="100, 200"),
    row(SHORTEST, "Age equals max-age", cache_control="max-age=600", age="600"),
    row(SHORTEST, "Age exceeds it", cache_control="max-age=600", age="9" * 20),
    row(600, "Expires minus Date", expires=date(600), date=date(0)),
    row(900, "a server's slow clock", expires=date(600), date=date(-300)),
    row(600, "a server's fast clock", expires=date(9_600), date=date(9_000)),
    row(600, "Expires without Date", expires=date(600)),
    row(600, "Expires, broken Date", expires=date(600), date="today"),
    row(500, "Expires minus Age", expires=date(600), age="100"),
    row(400, "minus both", expires=date(600), date=date(100), age="100"),
    row(SHORTEST, "Expires in the past", expires=date(-600), date=date(0)),
    row(SHORTEST, "start of time", expires="Thu, 01 Jan 1970 00:00:00 GMT"),
    row(LONGEST, "end of time", expires="Fri, 31 Dec 9999 23:59:59 GMT"),
    row(SHORTEST, "too short", cache_control="max-age=59"),
    row(60, "the shortest", cache_control="max-age=60"),
    row(LONGEST, "the longest", cache_control="max-age=604800"),
    row(LONGEST, "too long", cache_control="max-age=604801"),
    row(LONGEST, "2^31", cache_control=f"max-age={2**31}"),
    row(LONGEST, "too many digits", cache_control="max-age=" + "9" * 10_000),
    row(600, "too many zeros", cache_control=f"max-age={'0' * 5_000}600"),
    row(600, "too many quoted zeros", cache_control=f's-maxage="{"0" * 5_000}600"'),
    row(500, "a long Age", cache_control="max-age=600", age="0" * 5_000 + "100"),
    row(DEFAULT, "a fraction", cache_control="max-age=600.0"),
    row(600, "an Age with a fraction", cache_control="max-age=600", age="100.0"),
    row(DEFAULT, "a broken max-age", cache_control="max-age=+600"),
    row(600, "a broken one, Expires", cache_control="max-age=6e2", expires=date(600)),
    row(700, "a broken s-maxage", cache_control="s-maxage=-600,max-age=700"),
    row(700, "a broken Age", cache_control="max-age=700", age="-600"),
    row(SHORTEST, "max-age=0", cache_control="public, max-age=0"),
    row(SHORTEST, "no-store", cache_control="no-store, max-age=600"),
    row(SHORTEST, "no-cache", cache_control="s-maxage=600,No-Cache"),
    row(SHORTEST, "no-store, Expires", cache_control="NO-STORE", expires=date(99)),
])  # fmt: skip
def test_headers_determine_the_freshness_lifetime(
    headers: dict[str, str], expected: float
) -> None:
    assert lifetime(headers) == expected


@pytest.mark.parametrize("value", [
    "", "0", "-1", "never", "2027-01-15T08:10:00Z", "Fri, 31 Dec 99999 23:59:59 GMT",
    "Fri, 31 Foo 2027 23:59:59 GMT", "9" * 5_000,
], ids=lambda value: value[:30])  # fmt: skip
def test_expires_that_is_not_a_date_means_expired(value: str) -> None:
    """RFC 9111 §5.3."""
    assert lifetime({"expires": value}) == SHORTEST


def test_only_the_caching_headers_are_read() -> None:
    names_read = set()

    class Headers(dict[str, str]):
        def get(self, key: str, default: str = "") -> str:  # type: ignore[override]  # enough here
            names_read.add(key)
            return default

        def __getitem__(self, key: str) -> str:
            names_read.add(key)
            return super().__getitem__(key)

    lifetime(Headers({"cache-control": "public", "expires": date(1)}))
    retry_after(Headers(), now=NOW, policy=Policy())

    assert names_read == set(CACHING_HEADERS)


@cases("policy default shortest longest", {
    "default": (Policy(), DAY, HOUR, 7 * DAY),
    "rfc9309": (Policy.rfc9309(), DAY, HOUR, DAY),
    "max_lifetime below an hour": (Policy(max_lifetime=600), DAY, 600, 600),
    "custom values":
        (Policy(default_lifetime=5, min_lifetime=100, max_lifetime=200), 5, 100, 200),
})  # fmt: skip
def test_policy_bounds_the_lifetime(
    policy: Policy, default: float, shortest: float, longest: float
) -> None:
    assert lifetime({}, policy=policy) == default
    assert lifetime({"cache-control": "max-age=1"}, policy=policy) == shortest
    assert lifetime({"cache-control": "max-age=9999999"}, policy=policy) == longest


@pytest.mark.parametrize(("value", "expected"), [
    ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0),
    ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777.0),
    ("Sun Nov  6 08:49:37 1994", 784_111_777.0),
    ("Sun, 06 Nov 1994 09:49:37 +0100", 784_111_777.0), ("", None), (" ", None),
    ("soon", None), ("1994", None), ("Sun, 06 Nov 99999 08:49:37 GMT", None),
    ("6 nov 1994 0:0:0 +" + "9" * 400, None),
], ids=lambda value: str(value)[:30])  # fmt: skip
def test_http_date_is_parsed(value: str, expected: float | None) -> None:
    assert http_date(value) == expected


@cases("value expected", {
    "seconds": ("120", 120),
    "seconds with spaces": (" 120 ", 120),
    "a date": (date(120), 120),
    "zero": ("0", 0),
    "a fraction": ("299.997", 300),
    "less than a second": ("0.129", 1),
    "a fraction of zero": ("120.0", 120),
    "only a fraction": (".5", 1),
    "a point without a fraction": ("120.", 120),
    "a long fraction": ("119." + "9" * 5_000, 120),
    "a point alone": (".", None),
    "two points": ("1.2.3", None),
    "a negative fraction": ("-0.5", None),
    "a fraction with an exponent": ("1.5e3", None),
    "a fraction with a unit": ("1.5s", None),
    "the longest of two with a fraction": ("0.5, 119.5", 120),
    "the longest": ("86400", DAY),
    "too long": ("86401", DAY),
    "far too long": ("9" * 5_000, DAY),
    "too many zeros": ("0" * 5_000 + "120", 120),
    "too many zeros, second": ("soon, " + "0" * 5_000 + "120", 120),
    "a date just past": (date(-1), -1),
    "a date long past": ("Thu, 01 Jan 1970 00:00:00 GMT", -NOW),
    "a date far in the future": ("Fri, 31 Dec 9999 23:59:59 GMT", DAY),
    "nothing": ("", None),
    "a word": ("soon", None),
    "a weekday": ("Fri", None),
    "no such month": ("Fri, 31 Foo 9999 23:59:59 GMT", None),
    "the longest of several": ("60, 120, 90", 120),
    "the only valid one": ("soon, 120,", 120),
    "a date later than the seconds": (f"60, {date(120)}", 120),
    "seconds ending after the date": (f"{date(60)}, 120", 120),
    "the later of two dates": (f"{date(120)}, {date(60)}", 120),
    "an RFC 850 date": ("Friday, 15-Jan-27 08:02:00 GMT", 120),
    "an asctime date": ("Fri Jan 15 08:02:00 2027", 120),
})  # fmt: skip
def test_retry_after_is_parsed_as_a_delay(value: str, expected: float | None) -> None:
    headers = {"retry-after": value}

    assert retry_after(headers, now=NOW, policy=Policy()) == expected


def test_policy_bounds_retry_after() -> None:
    policy = Policy(retry_initial=10, retry_after_max=20)

    delays = [
        retry_after({"retry-after": value}, now=NOW, policy=policy)
        for value in ("9", "15", "21")
    ]

    assert delays == [9, 15, 20]


DOUBLING = [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]


@cases("policy status failures expected", {
    **{f"{name}, no response": (policy, None, range(1, 9), DOUBLING)
        for name, policy in PRESETS.items()},
    "a server error": (Policy(), 500, range(1, 9), DOUBLING),
    "too many requests": (Policy(), 429, range(1, 9), DOUBLING),
    "a 503 starts lower": (Policy(), 503, range(1, 10), [30, *DOUBLING]),
    "no growth": (Policy(retry_factor=1), 500, (1, 10, 10**8), [60, 60, 60]),
    "slow growth": (Policy(retry_factor=1.001), 500, (4_000, 5_000),
        [60 * 1.001**3_999, 3_600]),
    "custom values": (Policy(retry_initial=10, retry_factor=3, retry_max=100), 500,
        range(1, 5), [10, 30, 90, 100]),
    "custom values for 503":
        (Policy(retry_initial_503=5, retry_factor=3, retry_max=100), 503, range(1, 5),
        [5, 15, 45, 100]),
    **{f"endless failures, factor {factor}":
        (Policy(retry_factor=factor), 500, (1_100, 10**9), [3_600, 3_600])
        for factor in (2.0, 1e300, 10)},
})  # fmt: skip
def test_retry_delay_grows_up_to_its_limit(
    policy: Policy, status: int | None, failures: Sequence[int], expected: list[float]
) -> None:
    jitter = JITTERED_MINUTE / 60

    delays = [
        retry_delay(failures=number, status=status, origin=ORIGIN, policy=policy)
        for number in failures
    ]

    assert [delay / jitter for delay in delays] == pytest.approx(expected)


def jittered(origin: str) -> float:
    return retry_delay(failures=1, status=None, origin=origin, policy=Policy())


def test_jitter_spreads_origins_over_ten_percent() -> None:
    delays = [jittered(f"https://host{number}.example") for number in range(1_000)]

    assert {int((delay - 60) / 0.6) for delay in delays} == set(range(10))


def test_jitter_of_an_origin_is_always_the_same() -> None:
    """It must not use `hash()`, which differs between processes."""
    assert jittered(ORIGIN) == pytest.approx(JITTERED_MINUTE)
