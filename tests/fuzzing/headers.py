"""Fuzzes how response headers and error pages are read.

Values may be anything; the results must be within the policy's limits.
"""

from __future__ import annotations

import calendar
import json
import math
import re
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from robotsgate.caching._access_result import access_result, says_not_found
from robotsgate.caching._attempt import entry_after
from robotsgate.caching._coding import CodingError, decoder_of
from robotsgate.caching._entry import keep_until
from robotsgate.caching._freshness import (
    freshness_lifetime,
    http_date,
    retry_after,
)
from robotsgate.caching._in_force import explain, in_force
from robotsgate.caching._outcome import AccessResult, Answered
from robotsgate.caching._policy import Policy
from robotsgate.robotstxt._robots_txt import RobotsTxt
from tests.fuzzing.target import Target, as_header, fields, in_time, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._entry import Entry

_NAMES = ("cache-control", "age", "expires", "date", "retry-after", "content-encoding")
_CODINGS = {"", "identity", "gzip", "x-gzip", "deflate"}

_POLICIES = (
    Policy(), Policy.google_today(), Policy.google_2021(), Policy.rfc9309(),
    Policy.strict(), Policy(min_lifetime=0, max_lifetime=0, retry_factor=1e300),
)  # fmt: skip

_ORIGIN = "https://example.com"
_PAGE = f"{_ORIGIN}/page"
_NO_RULES = RobotsTxt.parse("")

_NOW = 1_800_000_000.0
_MAX_CLOCK_DIGITS = 11

_DIGITS = re.compile(r"[0-9]{1,9}")
_DIRECTIVE = re.compile(
    r"""[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)"""
    r"""(?:=([!#$%&'*+.^_`|~0-9A-Za-z-]+|"[^"\\]*"))?[ \t]*(?:,|$)"""
)
_IMF_FIXDATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ([0-9]{4}) "
    r"([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_MONTHS = list(calendar.month_abbr)


def check(data: bytes) -> None:
    """Read one response under each policy."""
    *values, clock, status_bytes, page = fields(data, len(_NAMES) + 3)
    headers = {
        name: as_header(value)
        for name, value in zip(_NAMES, values, strict=True)
        if value
    }
    now = float(_number(clock, _MAX_CLOCK_DIGITS, _NOW))
    status = int(_number(status_bytes, 3, 200))
    answer = Answered(status=max(status, 100), headers=headers, body=page)
    for value in headers.values():
        _check_date(value)
    in_time(
        "reading an error page",
        lambda: says_not_found(page, status=answer.status, origin=_ORIGIN),
    )
    _check_coding(headers.get("content-encoding", ""))
    for policy in _POLICIES:
        _check_lifetime(headers, now, policy)
        _check_retry(headers, now, policy)
    # Only one policy, because this check is the slowest.
    _check_entry(answer, now, _POLICIES[zlib.crc32(data) % len(_POLICIES)])


def _number(data: bytes, digits: int, default: float) -> float:
    return int(data[:digits]) if data[:digits].isdigit() else default


def _check_date(value: str) -> None:
    date = in_time("reading a date", lambda: http_date(value))
    assert date is None or math.isfinite(date)
    well_formed = _IMF_FIXDATE.fullmatch(value)
    if well_formed is None:
        return
    day, month, year, *rest = well_formed.groups()
    try:
        expected = datetime(
            int(year), _MONTHS.index(month), int(day), *map(int, rest), tzinfo=UTC
        )
    except ValueError:  # an impossible date, or a leap second
        return
    if expected.year >= 100:
        assert date == expected.timestamp()


def _check_coding(value: str) -> None:
    """Check that a requested coding is accepted, and others with a short message."""
    message = ""
    try:
        decoder_of(value)
    except CodingError as error:
        message = str(error)
    assert not (message and value.strip().lower() in _CODINGS)
    assert len(message) < 500
    assert message.isprintable()


def _check_lifetime(headers: Mapping[str, str], now: float, policy: Policy) -> None:
    lifetime = in_time(
        "reading Cache-Control",
        lambda: freshness_lifetime(headers, now=now, policy=policy),
    )
    assert (
        policy.min_lifetime <= lifetime <= policy.max_lifetime
        or lifetime == policy.default_lifetime
    )
    requested = _well_formed_lifetime(headers)
    if requested is not None:
        assert lifetime == min(max(requested, policy.min_lifetime), policy.max_lifetime)
    if not headers:
        assert lifetime == policy.default_lifetime


def _well_formed_lifetime(headers: Mapping[str, str]) -> float | None:
    """The lifetime from a well-formed Cache-Control, in seconds; otherwise `None`."""
    value, position = headers.get("cache-control", ""), 0
    directives: dict[str, str] = {}
    while position < len(value):
        match = _DIRECTIVE.match(value, position)
        if match is None:
            return None
        directives.setdefault(match[1].lower(), (match[2] or "").strip('"'))
        position = match.end()
    age = headers.get("age", "0")
    if directives.keys() & {"no-store", "no-cache"}:
        return 0
    requested = directives.get("s-maxage", directives.get("max-age", ""))
    first_age = age.partition(",")[0]
    if not (_DIGITS.fullmatch(requested) and _DIGITS.fullmatch(first_age)):
        return None
    return int(requested) - int(first_age)


def _check_retry(headers: Mapping[str, str], now: float, policy: Policy) -> None:
    requested = retry_after(headers, now=now, policy=policy)
    assert requested is None or requested <= policy.retry_after_max
    value = headers.get("retry-after", "")
    if _DIGITS.fullmatch(value):
        assert requested == min(int(value), policy.retry_after_max)


def _check_entry(response: Answered, now: float, policy: Policy) -> None:
    """Check that the entry is usable, and its verdict printable and valid JSON."""
    entry: Entry | None = None
    for ended_at in (now, now + 60):
        last = None if entry is None else entry.access
        entry = entry_after(
            entry,
            response,
            origin=_ORIGIN,
            began_at=ended_at,
            now=ended_at,
            policy=policy,
        )
        assert entry.access is access_result(
            response, policy, origin=_ORIGIN, last_access=last
        )
        assert entry.checked_at == ended_at <= entry.next_fetch_at < math.inf
        assert entry.next_fetch_at <= keep_until(entry, policy)
        assert entry.is_current(ended_at) is (ended_at < entry.next_fetch_at)
        standing = in_force(entry, now=ended_at, policy=policy)
        assert standing.until <= entry.next_fetch_at
        match = _NO_RULES.match("ExampleBot", _PAGE)
        verdict = explain(entry, standing, match, url=_PAGE, agent="ExampleBot")
        assert str(verdict).isprintable()
        assert json.dumps(verdict.as_dict(), allow_nan=False)
        if entry.access in {AccessResult.UNREACHABLE, AccessResult.RESTRICTED}:
            assert not verdict.allowed


def _seed(
    *, clock: bytes = b"", status: bytes = b"", page: bytes = b"", **values: bytes
) -> bytes:
    """The input for the given headers, with "_" for "-" in their names."""
    named = [values.get(name.replace("-", "_"), b"") for name in _NAMES]
    return joined(*named, clock, status, page)


_DATE = b"Fri, 15 Jan 2027 08:00:00 GMT"

TARGET = Target(
    check=check,
    seeds=(
        _seed(cache_control=b"max-age=3600, s-maxage=7200", age=b"60"),
        _seed(cache_control=b'private="a, b", Max-Age="86400"', age=b"1, 2"),
        _seed(cache_control=b'x="\\"", max-age=1', clock=b"0"),
        _seed(cache_control=b"no-cache", expires=b"Fri, 31 Dec 9999 23:59:59 GMT"),
        _seed(expires=b"Fri, 15 Jan 2027 09:00:00 GMT", date=_DATE),
        _seed(expires=b"0", date=b"Friday, 15-Jan-27 08:00:00 GMT"),
        _seed(expires=b"Fri Jan 15 08:00:00 2027", date=b"1 Jan 70 0:0 +9999"),
        _seed(retry_after=b"120", status=b"503", page=b"<h1>404</h1>"),
        _seed(retry_after=b"60, " + _DATE + b", 120", clock=b"1799999990"),
        _seed(retry_after=_DATE, clock=b"1800000000", status=b"429"),
        _seed(status=b"500", page=b"<title a>Page not found</title>"),
        _seed(content_encoding=b"gzip, br", status=b"403"),
    ),
    words=(
        b"max-age=", b"s-maxage=", b"no-store", b"no-cache", b"private", b"public",
        b"must-revalidate", b'"', b'\\"', b",", b"=", b" ", b"\t", b"0", b"-1", b"1.5",
        b"2147483648", b"99999999999999999999", b"\xc2\xb2", b"\xd9\xa3", b"Mon, ",
        b"Sun, ", b" Jan ", b" Dec ", b"9999", b"0000", b"1970", b"23:59:60",
        b"00:00:00", b" GMT", b" UTC", b" +0000", b" -9999", b" EST", b"(", b")", b":",
        b"-", b".", b"\xfe", b"<title>", b"</title>", b"<h1", b"</h1>", b"404",
        b"not found", b"\xe2\x80\x99", b"429", b"503", b"401",
        b"gzip", b"deflate", b"identity",
    ),
    max_length=512,
)  # fmt: skip
