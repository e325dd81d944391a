"""Decides whether a response ends a fetch, and with what, or where the next GET goes.

Pure: it looks at responses, but sends nothing. RFC 9309 §2.3.1.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.caching._access_result import is_success, is_wall
from robotsgate.caching._coding import CodingError, file_in
from robotsgate.caching._freshness import CACHING_HEADERS
from robotsgate.caching._outcome import FailureKind, Outcome, fault
from robotsgate.robotstxt._headers import header_values, headers_named
from robotsgate.urls._url import RedirectError, next_hop

if TYPE_CHECKING:
    from robotsgate.caching._outcome import Redirects
    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.urls._url import Origin

# The headers that tell where a body ends, even if the connection is lost.
_ENDS = frozenset({"content-length", "transfer-encoding"})

# How much of a URL from a server is kept in the entry.
_LONGEST_URL = 2_048

# The content type has no effect, but may interest the author of the file.
_KEPT_HEADERS = frozenset({*CACHING_HEADERS, "content-type"})
_USED_HEADERS = _KEPT_HEADERS | _ENDS | {"location"}


class Hops:
    """The GETs of one fetch, starting with an origin's robots.txt.

    Attributes:
        origin: the origin of the current GET.
        url: the URL of the current GET, in ASCII.
    """

    def __init__(self, origin: Origin, *, policy: Policy) -> None:
        self.origin: Origin = origin
        self.url: str = origin.robots_url
        self._policy = policy
        # Maps the URL of each GET to the status that redirected there; `None` for the
        # first.
        self._statuses: dict[str, int | None] = {self.url: None}

    @property
    def redirects(self) -> Redirects:
        """The redirects followed so far."""
        return tuple(
            (url[:_LONGEST_URL], status)
            for url, status in self._statuses.items()
            if status is not None
        )

    def after(
        self,
        status: int,
        headers: HeadersLike,
        body: bytes,
        *,
        content_encoding: str = "",
    ) -> Outcome | None:
        """The outcome if this response ends the fetch; `None` if it continues at `url`.

        Args:
            status: 100 to 999.
            headers: the response headers; names in any letter case.
            body: as in `Outcome`, apart from a gzip layer without a label.
            content_encoding: the value of that header; "" for an archived response,
                which may have kept the header without the coding.
        """
        # This raises if the caller's client is at fault.
        used = headers_named(headers, _USED_HEADERS)
        try:
            return self._outcome(status, used, body, content_encoding)
        except CodingError as unreadable:
            return Outcome(
                failure=FailureKind.CODING,
                error=f"{type(unreadable).__name__}: {unreadable}",
                redirects=self.redirects,
            )
        except Exception as bug:  # noqa: BLE001 (see `judge`)
            return fault(bug, self.redirects)

    def _outcome(
        self,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
        content_encoding: str,
    ) -> Outcome | None:
        kept = _kept_headers(headers)
        error = None
        try:
            hop = next_hop(self.url, status, header_values(headers, "location"))
        except RedirectError as unusable:
            error = str(unusable)
        else:
            if hop is not None:
                return self._follow(hop, status, kept)
        if is_success(status):
            if content_encoding and not body:
                _check_end(headers)
            most = self._policy.max_body_bytes + 1
            body = file_in(body, content_encoding, max_bytes=most)
        of_wall = is_wall(status, body, self._policy)
        if of_wall:
            error = f"a {status} without any rules, typical of a bot wall"
        return Outcome(
            status=status,
            headers=kept,
            body=body,
            redirects=self.redirects,
            error=error,
            is_wall=of_wall,
        )

    def _follow(
        self, hop: tuple[Origin, str], status: int, kept: dict[str, str]
    ) -> Outcome | None:
        """Continue with `hop`, unless that would be a loop or one redirect too many."""
        origin, url = hop
        if url in self._statuses:
            error = f"a redirect loop at {url}"
        elif len(self._statuses) > self._policy.max_redirects:
            error = f"more than {self._policy.max_redirects} redirects"
        else:
            self.origin, self.url = origin, url
            self._statuses[url] = status
            return None
        return Outcome(
            status=status,
            headers=kept,
            redirects=self.redirects,
            error=error,
            has_too_many_redirects=True,
        )


def _kept_headers(headers: HeadersLike) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in headers_named(headers, _KEPT_HEADERS):
        kept[name] = f"{kept[name]}, {value}" if name in kept else value
    return kept


def _check_end(headers: HeadersLike) -> None:
    """Raise unless `headers` say where an encoded body ends, which is empty.

    Raises:
        CodingError: the connection may have been lost before the first byte.
    """
    if not headers_named(headers, _ENDS):
        raise CodingError("the compressed body is cut off before its first byte")
