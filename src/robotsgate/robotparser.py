"""A drop-in for `urllib.robotparser` that follows RFC 9309 and never refreshes."""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from robotsgate._clock import SystemClock
from robotsgate._version import __version__
from robotsgate.caching._policy import AccessResult, Policy
from robotsgate.errors import InvalidURLError
from robotsgate.fetching._robots_fetch import fetch_blocking
from robotsgate.robotstxt._product_token import crawler_or_any
from robotsgate.robotstxt._robots_txt import RobotsTxt
from robotsgate.urls._url import C0_AND_SPACE

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RequestRate", "RobotFileParser"]

# 401, 403 and too many redirects allow nothing: a changed import must not open a site.
_POLICY = Policy.strict()


class RequestRate(NamedTuple):
    """At most `requests` requests in `seconds` seconds; both ≥ 1."""

    requests: int
    seconds: int


class RobotFileParser:
    """Fetches and parses one robots.txt, like `urllib.robotparser.RobotFileParser`.

    Attributes:
        url: the URL of the robots.txt; `host` and `path` are parts of it.
        last_checked: when a file was last parsed, in epoch seconds; 0 if never.
        disallow_all: whether nothing is allowed.
        allow_all: whether everything is allowed, unless `disallow_all` is true.
        sitemaps: as written in the file, without duplicates.
    """

    def __init__(self, url: str = "", *, user_agent: str | None = None) -> None:
        """Set the URL of the robots.txt, and the User-Agent header for `read`."""
        self._user_agent = user_agent or f"robotsgate/{__version__}"
        self.last_checked: float = 0
        self.disallow_all: bool = False
        self.allow_all: bool = False
        self._replace(b"")
        self.set_url(url)

    def set_url(self, url: str) -> None:
        """Set the URL of the robots.txt."""
        self.url: str = url
        self.host: str = urlsplit(url).netloc
        self.path: str = urlsplit(url).path

    def read(self) -> None:
        """Fetch exactly `url`; the response replaces everything known before.

        A 4xx other than 401, 403, 407 and 429 allows everything. Any other response
        without a file and any failure allow nothing (RFC 9309 §2.3.1).

        Raises:
            InvalidURLError: `url` is not an http, https or ftp URL, but for example a
                file: URL; pass the lines of a local file to `parse`.
        """
        access, body = fetch_blocking(self.url, self._user_agent, policy=_POLICY)
        is_file = access is AccessResult.SUCCESSFUL
        self.allow_all = access is AccessResult.UNAVAILABLE
        self.disallow_all = not (is_file or self.allow_all)
        self._replace(body if is_file else b"")
        if is_file:
            self.modified()

    def parse(self, lines: Iterable[str]) -> None:
        """Add `lines` to the file; a `str` may hold all of them."""
        text = lines if isinstance(lines, str) else "\n".join(lines)
        self._replace(self._body + text.encode("utf-8", "surrogatepass"))
        self.modified()

    def can_fetch(self, useragent: str, url: str) -> bool:
        """Whether `useragent`, which may be any text, may fetch a URL, path or //host.

        `False` before the first file, and for mailto: URLs and such unless `allow_all`.
        """
        if self.disallow_all or not (self.allow_all or self.last_checked):
            return False
        url = url.strip(C0_AND_SPACE)
        url = f"http:{url}" if url.startswith("//") else url
        if ":" not in url.partition("/")[0].partition("?")[0]:
            url = f"/{url.removeprefix('/')}"
        with suppress(InvalidURLError):
            rules = self._robots_txt
            return self.allow_all or rules.can_fetch(crawler_or_any(useragent), url)
        return False

    def crawl_delay(self, useragent: str) -> float | None:
        """The crawl-delay in seconds, as an `int` if possible, or `None`."""
        delay = self._robots_txt.crawl_delay(crawler_or_any(useragent))
        return int(delay) if delay is not None and delay.is_integer() else delay

    def request_rate(self, useragent: str) -> RequestRate | None:
        """The request rate, with the seconds rounded up, or `None`."""
        rate = self._robots_txt.request_rate(crawler_or_any(useragent))
        return None if rate is None else RequestRate(rate.requests, ceil(rate.seconds))

    def site_maps(self) -> list[str] | None:
        """`sitemaps`, or `None` if there are none."""
        return self.sitemaps or None

    def mtime(self) -> float:
        """The value of `last_checked`."""
        return self.last_checked

    def modified(self) -> None:
        """Set `last_checked` to the current time."""
        self.last_checked = SystemClock.now()

    def __str__(self) -> str:
        """The groups, in the form of a robots.txt."""
        return "\n\n".join(map(str, self._robots_txt.groups))

    def _replace(self, body: bytes) -> None:
        self._body = body and body + b"\n"
        self._robots_txt = RobotsTxt.parse(body)
        self.sitemaps: list[str] = [*self._robots_txt.sitemaps]
