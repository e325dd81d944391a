"""Reads the values of records that are no rules: delays, rates, sitemaps.

None of them is part of RFC 9309 (§2.2.4 lets a crawler read them); a value that
makes no sense is no value.
"""

from __future__ import annotations

import math

from robotsgate.robotstxt._model import RequestRate

_SECONDS = {"s": 1, "m": 60, "h": 3_600}


def crawl_delay_seconds(value: str) -> float | None:
    """Seconds, ≥ 0 and finite; `None` for anything but a plain decimal number."""
    digits = value.replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()):
        return None
    seconds = float(value)
    return seconds if math.isfinite(seconds) else None


def request_rate(value: str) -> RequestRate | None:
    """The rate in "1/5", "1/10s", "30/1m" or "1/5 0600-0845"; `None` if there is none.

    A time of day behind it is ignored.
    """
    first_word = next(iter(value.split()), "")
    requests, slash, period = first_word.partition("/")
    unit = _SECONDS.get(period[-1:].lower(), 0)
    seconds = crawl_delay_seconds(period[:-1] if unit else period)
    count = crawl_delay_seconds(requests)
    if not slash or not seconds or not count or not count.is_integer():
        return None
    seconds *= unit or 1
    if not math.isfinite(seconds):
        return None
    return RequestRate(requests=int(count), seconds=seconds)


def is_absolute_url(value: str) -> bool:
    """Whether a sitemap can be fetched as it stands, without the file's own URL."""
    scheme, separator, rest = value.partition("://")
    return bool(separator and rest) and scheme.lower() in {"http", "https", "ftp"}
