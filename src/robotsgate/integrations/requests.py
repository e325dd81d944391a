"""Obeys robots.txt in a session of requests. Needs the extra requests."""

from __future__ import annotations

from robotsgate import InvalidURLError, sync
from robotsgate.fetching import passes_unasked
from robotsgate.integrations._wrapping import DisallowedRequestError, missing_extra

try:
    import requests
except ImportError as error:
    raise missing_extra("requests") from error

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from requests.adapters import BaseAdapter, HTTPAdapter

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            requests.exceptions.InvalidURL: its URL names no origin.
        """
        url = request.url or ""
        try:
            if not passes_unasked(urlsplit(url).scheme, request.path_url):
                verdict = self._checker.refusal(self._agent, url)
                if verdict is not None:
                    raise RobotsDisallowedError(verdict, request=request)
        except InvalidURLError as error:
            raise requests.exceptions.InvalidURL(str(error), request=request) from error
        return self._wrapped.send(request, *arguments, **options)

    def close(self) -> None:
        """Close the wrapped adapter."""
        self._wrapped.close()
