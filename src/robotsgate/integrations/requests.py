"""robots.txt for requests sessions. Needs the requests extra."""

from __future__ import annotations

from robotsgate import InvalidURLError
from robotsgate.integrations._sessions import SessionAdapter, SessionErrors
from robotsgate.integrations._wrapping import (
    DisallowedRequestError,
    asked_url,
    missing_extra,
)

try:
    import requests
except ImportError as error:
    raise missing_extra("requests") from error

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    InvalidURL,
)
from urllib3.util import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate import sync

__all__ = ["RobotsAdapter", "RobotsDisallowedError"]


class RobotsDisallowedError(DisallowedRequestError, requests.RequestException):
    """A request that was not sent because robots.txt does not allow it.

    Both a `DisallowedError` and a `requests.RequestException`.

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
        """Wrap an adapter.

        Args:
            checker: a checker from `robotsgate.sync`; close it yourself.
            agent: as in `RobotsChecker.can_fetch`.
            wrapped: the adapter that sends the requests, closed together with this one;
                by default, an `HTTPAdapter`.
            gate: a gate from `robotsgate.sync`, which provides a turn for each checked
                request. The turn ends when the body has been read or the response is
                closed. The gate uses its own checker and agent.

        Raises:
            TypeError: `checker` or `gate` is not from `robotsgate.sync`.
            InvalidProductTokenError: `agent` is not the name of a crawler.
        """
        inner = HTTPAdapter() if wrapped is None else wrapped
        super().__init__(checker, agent, wrapped=inner, gate=gate)

    def _asked_urls(self, request: requests.PreparedRequest) -> Iterator[str]:
        """Includes more URLs if the path may be sent in a different form.

        urllib3 may change it when using a proxy, and requests before 2.34 sends a path
        that starts with "//" with a single slash.
        """
        try:
            sent = urlsplit(request.url or "")  # HTTPAdapter parses it in the same way
            port = sent.port
            to_proxy = parse_url(request.url or "").request_uri
        except ValueError as error:
            raise InvalidURLError(str(error), url=request.url) from error
        path = request.path_url
        for target in dict.fromkeys((path, to_proxy, "/" + path.lstrip("/"))):
            url = asked_url(sent.scheme, sent.hostname or "", port, target)
            if url is not None:
                yield url
