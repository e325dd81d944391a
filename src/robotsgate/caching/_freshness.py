"""Computes how long a response stays fresh, and when an origin may be fetched again.

Pure. Sources: RFC 9309 §2.4, RFC 9111 §4.2 and §5.2.2, RFC 9110 §10.2.3.
Headers are mappings with lower-case names. Invalid values are ignored.
"""

from __future__ import annotations

import math
import zlib
from http import HTTPStatus
from typing import TYPE_CHECKING

from robotsgate._numbers import decimal_number, whole_number
from robotsgate._public import set_module
from robotsgate.caching._outcome import is_success

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from robotsgate.caching._policy import Policy

CACHING_HEADERS = ("age", "cache-control", "date", "expires", "retry-after")
"""The only headers used here."""

ASK_FOR_LESS = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""The statuses with which a server asks for fewer requests."""

# RFC 9111 §1.2.2: a delta-seconds that is too large to handle counts as 2^31.
_LARGEST_DELTA = 2**31

# Spreads the retries of origins that failed at the same time over 10% of the delay.
_JITTER = 0.1


@set_module("robotsgate.caching")
def freshness_lifetime(
    headers: Mapping[str, str], *, now: float, policy: Policy
) -> float:
    """How many seconds from `now` a response stays fresh (RFC 9111 §4.2.1).

    This is the lifetime that the headers specify, but at least `min_lifetime` and at
    most `max_lifetime`. If the headers specify no lifetime, it is `default_lifetime`.
    """
    asked = _lifetime_asked_for(headers, now)
    if asked is None:
        return policy.default_lifetime
    return min(max(asked, policy.min_lifetime), policy.max_lifetime)


def retry_delay(
    *, failures: int, status: int | None, origin: str, policy: Policy
) -> float:
    """Seconds to back off after this many `failures` (≥ 1), the last with `status`.

    The delay grows with each failure, up to `retry_max` plus the origin's jitter.
    """
    is_503 = status == HTTPStatus.SERVICE_UNAVAILABLE
    delay = policy.retry_initial_503 if is_503 else policy.retry_initial
    try:
        delay *= float(policy.retry_factor) ** (failures - 1)
    except OverflowError:
        delay = policy.retry_max
    return with_jitter(min(delay, policy.retry_max), origin)


def retry_after(
    headers: Mapping[str, str], *, now: float, policy: Policy
) -> float | None:
    """Seconds to wait according to Retry-After (RFC 9110 §10.2.3); `None` if missing.

    If there are several values, the longest is used, up to `retry_after_max`. Seconds
    may have a fraction, which is rounded up. The result is negative for a date in the
    past.
    """
    # A date also contains a comma. The part before it, the weekday, is ignored.
    parts = headers.get("retry-after", "").split(",")
    delays = [_delay_asked_for(part.strip(), now) for part in parts]
    longest = max((delay for delay in delays if delay is not None), default=None)
    return None if longest is None else min(longest, policy.retry_after_max)


@set_module("robotsgate.caching")
def seconds_asked_for(
    status: int | None, headers: Mapping[str, str], *, now: float, policy: Policy
) -> float | None:
    """Seconds that a host asks to wait before its next request (RFC 9110 §10.2.3).

    `None` without a Retry-After, and for a 2xx or 304, which need no other request. The
    result is negative for a date in the past, and at most `Policy.retry_after_max`.

    Args:
        status: the status of the host's response; `None` if it is unknown.
        headers: the response's headers; the names are lower-case.
        now: the current time, in epoch seconds.
        policy: sets the limit.
    """
    is_done = status is not None and (
        is_success(status) or status == HTTPStatus.NOT_MODIFIED
    )
    if is_done or not headers.get("retry-after"):
        return None
    return retry_after(headers, now=now, policy=policy)


def with_jitter(seconds: float, name: str) -> float:
    """`seconds` plus jitter of up to 10%, which depends only on `name`.

    This way, origins or hosts that failed together are retried at different times.
    """
    return seconds * (1 + _JITTER * zlib.crc32(name.encode()) / 2**32)


def http_date(value: str) -> float | None:
    """An HTTP-date (RFC 9110 §5.6.7) as epoch seconds; `None` if it is invalid."""
    # Imported here, because it imports `socket`.
    from email.utils import mktime_tz, parsedate_tz  # noqa: PLC0415

    try:
        parts = parsedate_tz(value)
        return None if parts is None else float(mktime_tz(parts))
    except (ValueError, OverflowError, IndexError):
        return None


def _delay_asked_for(value: str, now: float) -> float | None:
    seconds = decimal_number(value)
    if seconds is not None:  # RFC 9110 has no fractions, but some servers send them
        return math.ceil(min(seconds, _LARGEST_DELTA))
    date = http_date(value)
    return None if date is None else date - now


def _lifetime_asked_for(headers: Mapping[str, str], now: float) -> float | None:
    if "cache-control" in headers:
        directives = _directives(headers["cache-control"])
        if "no-store" in directives or "no-cache" in directives:
            return 0.0
        for name in ("s-maxage", "max-age"):
            lifetime = whole_number(directives.get(name, ""), most=_LARGEST_DELTA)
            if lifetime is not None:
                return lifetime - _age(headers)
    if "expires" not in headers:
        return None
    expires = http_date(headers["expires"])
    if expires is None:  # RFC 9111 §5.3: it has expired
        return 0.0
    date = http_date(headers.get("date", ""))
    return expires - (now if date is None else date) - _age(headers)


def _age(headers: Mapping[str, str]) -> int:
    first = headers.get("age", "").partition(",")[0].strip()
    return whole_number(first, most=_LARGEST_DELTA) or 0


def _directives(cache_control: str) -> dict[str, str]:
    """The directives' values, keyed by lower-case name; repeats are ignored."""
    directives: dict[str, str] = {}
    for part in _outside_quotes(cache_control):
        name, _, value = part.partition("=")
        directives.setdefault(name.strip().lower(), value.strip().strip('"'))
    return directives


def _outside_quotes(value: str) -> Iterator[str]:
    """The items of a comma-separated header; commas in quoted strings are ignored."""
    part = ""
    for number, piece in enumerate(value.replace('\\"', "").split('"')):
        if number % 2:
            part += f'"{piece}"'
            continue
        *ended, rest = piece.split(",")
        for end in ended:
            yield part + end
            part = ""
        part += rest
    yield part
