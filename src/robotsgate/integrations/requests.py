"""Obeys robots.txt in a session of requests. Needs the extra requests."""

from __future__ import annotations

from robotsgate import InvalidURLError, UnsupportedError, sync
from robotsgate.integrations._wrapping import (
    DisallowedRequestError,
    asked_url,
    missing_extra,
)

try:
    import requests
except ImportError as error:
    raise missing_extra("requests") from error

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.util import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["RobotsAdapter", "RobotsDisallowedError"]


class RobotsDisallowedError(DisallowedRequestError, requests.RequestException):
    """A request that was not sent, because robots.txt does not allow it.

    Both a `DisallowedError` and a `requests.RequestException`.

    Attributes:
        request: the one that was not sent; after a redirect the one that follows it.
        verdict: the whole answer, with the rule and the line that decided.
    """


class RobotsAdapter(BaseAdapter):
    """An adapter that refuses what robots.txt disallows, redirects included.

    `session.mount("https://", RobotsAdapter(checker, agent))`, and the same for
    "http://". Requests for /robots.txt pass without a question. To let others pass,
    mount an `HTTPAdapter` for a longer prefix of their URLs.
    """

    def __init__(
        self,
        checker: sync.RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: BaseAdapter | None = None,
    ) -> None:
        """Wrap an adapter.

        Args:
            checker: one of `robotsgate.sync`; close it yourself.
            agent: as in `RobotsChecker.can_fetch`.
            wrapped: sends the requests; closed with this one. `None`: an
                `HTTPAdapter`.

        Raises:
            TypeError: `checker` is not one of `robotsgate.sync`.
        """
        given: object = checker
        if not isinstance(given, sync.RobotsChecker):
            raise TypeError(f"expected a checker of robotsgate.sync, got {given!r}")
        super().__init__()
        self._checker = checker
        self._agent = agent
        self._wrapped = HTTPAdapter() if wrapped is None else wrapped

    def send(
        self,
        request: requests.PreparedRequest,
        *arguments: Any,  # noqa: ANN401 (those of BaseAdapter.send)
        **options: Any,  # noqa: ANN401 (those of BaseAdapter.send)
    ) -> requests.Response:
        """Send `request` through the wrapped adapter, if it may be sent.

        Raises:
            RobotsDisallowedError: it may not.
            requests.exceptions.InvalidURL: the checker cannot ask about its URL.
        """
        try:
            for url in _asked_urls(request):
                verdict = self._checker.refusal(self._agent, url)
                if verdict is not None:
                    raise RobotsDisallowedError(verdict, request=request)
        except (InvalidURLError, UnsupportedError) as error:
            raise requests.exceptions.InvalidURL(str(error), request=request) from error
        return self._wrapped.send(request, *arguments, **options)

    def close(self) -> None:
        """Close the wrapped adapter."""
        self._wrapped.close()


def _asked_urls(request: requests.PreparedRequest) -> Iterator[str]:
    """The URL of `request` as it will be sent; none if it passes unasked.

    A second one if urllib3 changes the path of a request to a proxy.

    Raises:
        InvalidURLError: it names no origin, or nobody can know which one.
    """
    try:
        sent = urlsplit(request.url or "")  # as an HTTPAdapter does
        port = sent.port
        to_proxy = parse_url(request.url or "").request_uri
    except ValueError as error:
        raise InvalidURLError(str(error), url=request.url) from error
    for target in dict.fromkeys((request.path_url, to_proxy)):
        url = asked_url(sent.scheme, sent.hostname or "", port, target)
        if url is not None:
            yield url
