"""robots.txt for requests sessions. Needs the requests extra."""

from __future__ import annotations

from robotsgate import InvalidURLError
from robotsgate.errors import needs_extra
from robotsgate.integrations._door import (
    BLOCKING,
    Client,
    DisallowedRequestError,
    Door,
    asked_urls,
    at_once,
)

with needs_extra("requests"):
    import requests

from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import finalize

from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError, InvalidURL
from urllib3.util import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AsyncExitStack

    from robotsgate import sync

__all__ = ["RobotsAdapter", "RobotsDisallowedError", "RobotsSession"]


class RobotsDisallowedError(DisallowedRequestError, requests.RequestException):
    """A request that was not sent because robots.txt does not allow it.

    Both a `DisallowedError` and a `requests.RequestException`.

    Attributes:
        request: the request that was not sent, which may be for the target of a
            redirect.
        verdict: the full verdict, including the rule and its line.
    """


class RobotsAdapter(BaseAdapter):
    """An adapter that refuses disallowed requests, including redirects.

    A `RobotsSession` has one; in another session, mount one for "http://" and
    "https://". Requests for /robots.txt are not checked. To bypass the check for other
    requests, mount an `HTTPAdapter` for a longer prefix of their URLs.
    """

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
        super().__init__()
        self._door = Door(checker, agent, gate, modules=[BLOCKING])
        self._wrapped = HTTPAdapter() if wrapped is None else wrapped

    def send(
        self,
        request: requests.PreparedRequest,
        *arguments: Any,  # noqa: ANN401 (BaseAdapter.send's arguments)
        **options: Any,  # noqa: ANN401
    ) -> requests.Response:
        """Send `request` through the wrapped adapter if it is allowed.

        Raises:
            RobotsDisallowedError: the request is disallowed.
            requests.exceptions.InvalidURL: the checker does not support the URL.
        """
        is_streamed = any(arguments[:1]) or options.get("stream", False)
        hold = partial(self._hold, is_streamed=is_streamed)
        client = Client(_asked_urls, hold, RobotsDisallowedError, InvalidURL)

        def send(request: requests.PreparedRequest) -> requests.Response:
            return self._wrapped.send(request, *arguments, **options)

        response: requests.Response = at_once(self._door.send(request, send, client))
        return response

    def close(self) -> None:
        """Close the wrapped adapter."""
        self._wrapped.close()

    def _hold(
        self,
        response: requests.Response,
        _turn: object,
        block: AsyncExitStack,
        *,
        is_streamed: bool,
    ) -> requests.Response:
        # Digest authentication sends its second request through it.
        response.connection = self  # type: ignore[assignment] # any adapter
        if response.is_redirect:
            # A session follows a redirect even if its body is broken.
            with suppress(ChunkedEncodingError, ContentDecodingError):
                _ = response.content
        elif is_streamed and getattr(response.raw, "_original_response", None):
            _end_with_body(response, block.pop_all())
        else:
            # A hook may raise before the session reads the body. And only urllib3 tells
            # when a body ends, unless the response was made from bytes.
            _ = response.content
        return response


class RobotsSession(requests.Session):
    """A session with a `RobotsAdapter` for all URLs."""

    def __init__(
        self,
        checker: sync.RobotsChecker,
        agent: str | Sequence[str],
        *,
        gate: sync.PolitenessGate | None = None,
    ) -> None:
        """Create a session; the arguments and errors are those of `RobotsAdapter`."""
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, RobotsAdapter(checker, agent, gate=gate))


def _asked_urls(request: requests.PreparedRequest) -> Iterator[str]:
    """The URLs that `request` may be sent to.

    More than one if the path may be sent in a different form: urllib3 may change it
    when using a proxy, and requests before 2.34 sends a path that starts with "//" with
    a single slash.
    """
    try:
        sent = urlsplit(request.url or "")  # HTTPAdapter parses it in the same way
        port = sent.port
        to_proxy = parse_url(request.url or "").request_uri
    except ValueError as error:
        raise InvalidURLError(str(error), url=request.url) from error
    path = request.path_url
    targets = (path, to_proxy, "/" + path.lstrip("/"))
    host, headers = sent.hostname or "", request.headers.items()
    return asked_urls(sent.scheme, host, port, *targets, headers=headers)


def _end_with_body(response: requests.Response, end: AsyncExitStack) -> None:
    """Close `end` when `response` is fully read, closed or garbage-collected.

    urllib3 releases the connection at the end of the body or after an error, however
    the body is read, and requests releases it when it closes a response.
    """
    raw = response.raw
    release = raw.release_conn
    on_loss = finalize(response, _end_soon, end)
    on_loss.atexit = False

    def release_and_end() -> None:
        try:
            release()
        finally:
            on_loss.detach()
            at_once(end.aclose())

    raw.release_conn = release_and_end


def _end_soon(end: AsyncExitStack) -> None:
    """Close `end` in another thread, so that the garbage collector does not block."""
    with suppress(RuntimeError):  # the interpreter is shutting down
        Thread(target=lambda: at_once(end.aclose()), daemon=True).start()
