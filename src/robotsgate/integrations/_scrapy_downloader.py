"""Fetches robots.txt through Scrapy's downloader and downloader middlewares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import scrapy
from scrapy import signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http.request import NO_CALLBACK

from robotsgate import FailureKind, FetchedResponse, FetchFailedError, Policy
from robotsgate.fetching import NEVER_SENT, as_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response

# A key in the request's meta, which Scrapy copies along with the request: how many more
# bytes of a robots.txt body may be received.
_BYTES_LEFT = "robotsgate_bytes_left"

# Most users who set ROBOTSGATE_POLICY don't do it for the address guard.
_DEFAULT_POLICY = Policy()

# The maximum size of a body decoded by Scrapy; a larger body is considered corrupt.
_MOST_DECODED_BYTES = 32 * 1024 * 1024


def is_for_robots_txt(request: scrapy.Request) -> bool:
    """Whether a `DownloaderFetcher` has sent `request`."""
    return _BYTES_LEFT in request.meta


class DownloaderFetcher:
    """A `Fetcher` that uses Scrapy's downloader and its middlewares.

    It sends the User-Agent that Scrapy uses for all requests.

    Attributes:
        guard_setting: the setting with which the user chose an address guard, or `None`
            if the guard is the default. No guard can see where Scrapy connects.
    """

    def __init__(self, crawler: Crawler, *, seconds: float) -> None:
        """Fetch with `crawler`'s engine.

        Args:
            crawler: the crawler; its engine may not exist yet.
            seconds: how long a request may take once it has been sent.
        """
        self._crawler = crawler
        self._seconds = seconds
        self._under_way = 0
        policy = crawler.settings.get("ROBOTSGATE_POLICY", _DEFAULT_POLICY)
        is_chosen = policy.address_guard is not _DEFAULT_POLICY.address_guard
        self.guard_setting = "ROBOTSGATE_POLICY" if is_chosen else None

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`.

        When Scrapy decodes a body, it removes the content coding from the headers. If
        decoding fails, the headers still contain the coding.
        """
        own = {name: value for name, value in headers if name != "User-Agent"}
        request = scrapy.Request(
            url,
            # Scrapy neither sends a header that is `None` nor sets a default for it.
            headers={**dict.fromkeys(NEVER_SENT), **own},
            callback=NO_CALLBACK,
            dont_filter=True,
            meta={
                "dont_obey_robotstxt": True,
                "dont_cache": True,
                "dont_merge_cookies": True,
                "dont_redirect": True,
                "dont_retry": True,
                "download_fail_on_dataloss": False,  # the status would be lost
                "download_maxsize": 0,
                "download_timeout": self._seconds,
                _BYTES_LEFT: max_bytes,
            },
        )
        response = await self._download(request)
        body = response.body
        if "dataloss" in response.flags:
            body = b""
            if 200 <= response.status <= 299:  # noqa: PLR2004
                raise FetchFailedError("the body is cut off", kind=FailureKind.PROTOCOL)
        return FetchedResponse(
            status=response.status,
            headers=as_pairs(
                (name, value)
                for name, values in response.headers.items()
                for value in values
            ),
            body=body,
            is_decoded=False,
        )

    async def _download(self, request: scrapy.Request) -> Response:
        """Send `request`, and return the response.

        Raises:
            Exception: from Scrapy, or from the user's middlewares or handlers.
        """
        crawler = self._crawler
        # Not connected permanently, because that would slow down every chunk of every
        # page.
        if not self._under_way:
            crawler.signals.connect(self._bound_body, signals.bytes_received)
        self._under_way += 1
        try:
            return await crawler.engine.download_async(request)
        except Exception as error:
            if not isinstance(error, IgnoreRequest):
                crawler.stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            raise
        finally:
            self._under_way -= 1
            if not self._under_way:
                crawler.signals.disconnect(self._bound_body, signals.bytes_received)

    def _bound_body(self, data: bytes, request: scrapy.Request) -> None:
        """Stop one of this fetcher's downloads once it has received enough."""
        left = request.meta.get(_BYTES_LEFT)
        if left is None:
            return
        # Scrapy applies this limit when decoding. If it were set from the start, Scrapy
        # would also refuse a file with a larger Content-Length instead of truncating
        # it.
        request.meta["download_maxsize"] = _MOST_DECODED_BYTES
        request.meta[_BYTES_LEFT] = left - len(data)
        if left <= len(data):
            raise StopDownload(fail=False)
