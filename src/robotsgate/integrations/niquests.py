"""robots.txt for niquests sessions. Needs the niquests extra.

The extra replaces urllib3 with urllib3-future for all libraries in the environment.
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
    """A request that was not sent because robots.txt does not allow it.

    Both a `DisallowedError` and a `niquests.RequestException`.

    Attributes:
        request: the request that was not sent, which may be for the target of a
            redirect.
        verdict: the full verdict, including the rule and its line.
    """


class RobotsAdapter(SessionAdapter, BaseAdapter):
    """An adapter that refuses disallowed requests, including redirects.

    Use `session.mount("https://", RobotsAdapter(checker, agent))`, and do the same for
    "http://". Requests for /robots.txt are not checked. To bypass the check for other
    requests, mount an `HTTPAdapter` for a longer prefix of their URLs.

    It works with a `Session`, not an `AsyncSession`. It refuses multiplexed requests,
    because it would not see their redirects, and only supports http and https; for
    other schemes, mount an `HTTPAdapter`.
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
        """See `robotsgate.integrations.requests.RobotsAdapter`.

        `wrapped` is a niquests adapter. If it is `None`, session settings such as
        `retries` and `resolver` are not used.
        """
        inner = HTTPAdapter() if wrapped is None else wrapped
        super().__init__(checker, agent, wrapped=inner, gate=gate)

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 (BaseAdapter.send's arguments)
        """Send `request` through the wrapped adapter if it is allowed.

        Raises:
            RobotsDisallowedError: the request is disallowed.
            niquests.exceptions.InvalidURL: the checker does not support the URL.
            niquests.exceptions.MultiplexingError: the request is multiplexed.
            TypeError: the request comes from an `AsyncSession`.
        """
        if inspect.iscoroutinefunction(options.get("on_post_connection")):
            raise TypeError(
                "expected a niquests.Session around a RobotsAdapter, got an"
                " AsyncSession"
            )
        if options.get("multiplexed"):
            # Not a TypeError, because niquests would then retry in a different way.
            raise MultiplexingError(
                "a RobotsAdapter cannot check the redirects of multiplexed requests:"
                " expected multiplexed=False, got True",
                request=request,
            )
        return super().send(request, *arguments, **options)

    def _asked_urls(self, request: niquests.PreparedRequest) -> Iterator[str]:
        """Includes a second URL if urllib3 changes the path when using a proxy."""
        try:
            sent = parse_url(request.url)  # HTTPAdapter parses it in the same way
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
