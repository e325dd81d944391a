"""Obeys robots.txt in a session of niquests. Needs the extra niquests.

That extra replaces urllib3 by urllib3-future, for every library of the environment.
"""

from __future__ import annotations

from robotsgate import InvalidURLError
from robotsgate.integrations._sessions import SessionAdapter, SessionErrors
from robotsgate.integrations._wrapping import (
    DisallowedRequestError,
    asked_url,
    missing_extra,
)

try:
    import niquests
except ImportError as error:
    raise missing_extra("niquests") from error

import inspect
from typing import TYPE_CHECKING, Any

from niquests.adapters import BaseAdapter, HTTPAdapter
from niquests.exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    InvalidURL,
    MultiplexingError,
)
from niquests.packages.urllib3.exceptions import LocationParseError
from niquests.packages.urllib3.util import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate import sync

__all__ = ["RobotsAdapter", "RobotsDisallowedError"]


class RobotsDisallowedError(DisallowedRequestError, niquests.RequestException):
    """A request that was not sent, because robots.txt does not allow it.

    Both a `DisallowedError` and a `niquests.RequestException`.

    Attributes:
        request: the one that was not sent; after a redirect the one that follows it.
        verdict: the whole answer, with the rule and the line that decided.
    """


class RobotsAdapter(SessionAdapter, BaseAdapter):
    """An adapter that refuses what robots.txt disallows, redirects included.

    `session.mount("https://", RobotsAdapter(checker, agent))`, and the same for
    "http://". Requests for /robots.txt pass without a question. To let others pass,
    mount an `HTTPAdapter` for a longer prefix of their URLs.

    It is for a `Session`, not an `AsyncSession`. It refuses multiplexed requests,
    because their redirects would not pass through it, and sends no other schemes than
    http and https: mount an `HTTPAdapter` for those.
    """

    _errors = SessionErrors(
        refusal=RobotsDisallowedError,
        url_error=InvalidURL,
        broken_body=(ChunkedEncodingError, ContentDecodingError),
    )

    def __init__(
        self,
        checker: sync.RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: BaseAdapter | None = None,
        gate: sync.PolitenessGate | None = None,
    ) -> None:
        """As `robotsgate.integrations.requests.RobotsAdapter`.

        `wrapped` is an adapter of niquests. If it is `None`, the adapter does not have
        the settings of the session, such as `retries` and `resolver`.
        """
        inner = HTTPAdapter() if wrapped is None else wrapped
        super().__init__(checker, agent, wrapped=inner, gate=gate)

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 (those of BaseAdapter.send)
        """Send `request` through the wrapped adapter, if it may be sent.

        Raises:
            RobotsDisallowedError: it may not.
            niquests.exceptions.InvalidURL: the checker cannot ask about its URL.
            niquests.exceptions.MultiplexingError: the request is multiplexed.
            TypeError: an `AsyncSession` sends it.
        """
        if inspect.iscoroutinefunction(options.get("on_post_connection")):
            raise TypeError(
                "expected a niquests.Session around a RobotsAdapter, got an"
                " AsyncSession"
            )
        if options.get("multiplexed"):
            # Not a TypeError, after which niquests sends the request in another way.
            raise MultiplexingError(
                "a RobotsAdapter cannot check the redirects of multiplexed requests:"
                " expected multiplexed=False, got True",
                request=request,
            )
        return super().send(request, *arguments, **options)

    def _asked_urls(self, request: niquests.PreparedRequest) -> Iterator[str]:
        """A second one if urllib3 changes the path of a request to a proxy."""
        try:
            sent = parse_url(request.url)  # as an HTTPAdapter does
        except LocationParseError as error:
            raise InvalidURLError(str(error), url=request.url) from error
        if sent.scheme not in {"http", "https"}:
            raise InvalidURLError(
                f"expected an http or https URL, got {request.url!r}", url=request.url
            )
        host = (sent.host or "").strip("[]")
        for target in dict.fromkeys((request.path_url, sent.request_uri)):
            url = asked_url(sent.scheme, host, sent.port, target)
            if url is not None:
                yield url
