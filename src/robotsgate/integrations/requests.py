"""robots.txt for requests sessions. Needs the requests extra."""

from __future__ import annotations

from robotsgate import DisallowedError, InvalidURLError, UnsupportedError
from robotsgate.integrations._wrapping import (
    DisallowedRequestError,
    asked_url,
    check_arguments,
    enter_turn,
    missing_extra,
)

try:
    import requests
except ImportError as error:
    raise missing_extra("requests") from error

from contextlib import ExitStack, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import finalize

from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    InvalidURL,
)
from urllib3.util import parse_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


class RobotsAdapter(BaseAdapter):
    """An adapter that refuses disallowed requests, including redirects.

    Use `session.mount("https://", RobotsAdapter(checker, agent))`, and do the same for
    "http://". Requests for /robots.txt are not checked. To bypass the check for other
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
        check_arguments(checker, agent, gate, is_blocking=True)
        super().__init__()
        self._checker = checker
        self._agent = agent
        self._wrapped = HTTPAdapter() if wrapped is None else wrapped
        self._gate = gate

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
        with ExitStack() as block:
            try:
                turn = enter_turn(
                    self._asked_urls(request),
                    self._checker,
                    self._agent,
                    gate=self._gate,
                    block=block,
                )
            except DisallowedError as error:
                raise RobotsDisallowedError(error.verdict, request=request) from error
            except (InvalidURLError, UnsupportedError) as error:
                raise InvalidURL(str(error), request=request) from error
            response = self._wrapped.send(request, *arguments, **options)
            if turn is not None:
                turn.report(response)
                # Digest authentication sends its second request through it.
                response.connection = self  # type: ignore[assignment] # any adapter
                is_streamed = any(arguments[:1]) or options.get("stream", False)
                if response.is_redirect:
                    # A session follows a redirect even if its body is broken.
                    with suppress(ChunkedEncodingError, ContentDecodingError):
                        _ = response.content
                elif not is_streamed:
                    # A hook may raise before the session reads the body.
                    _ = response.content
                elif response.raw is not None:
                    _end_with_body(response, block.pop_all().close)
            return response

    def close(self) -> None:
        """Close the wrapped adapter."""
        self._wrapped.close()

    def _asked_urls(self, request: requests.PreparedRequest) -> Iterator[str]:
        """The URLs that `request` may be sent to; no URLs if no check is needed.

        More than one if the path may be sent in a different form: urllib3 may change it
        when using a proxy, and requests before 2.34 sends a path that starts with "//"
        with a single slash.
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


def _end_with_body(response: requests.Response, end: Callable[[], object]) -> None:
    """Call `end` once, when `response` is fully read, closed or garbage-collected."""
    iter_content, raw = response.iter_content, response.raw
    on_loss = finalize(response, _end_soon, end)
    on_loss.atexit = False

    def end_once() -> None:
        # Otherwise, the response would refer to itself and stay in memory.
        for owner, name, _ in changes:
            vars(owner).pop(name, None)
        changes.clear()
        if on_loss.detach():
            end()

    def iter_content_and_end(*arguments: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401 (`iter_content`'s arguments)
        return _then(end_once, iter_content(*arguments, **options))

    # requests reads every body through `iter_content`. A caller may read from `raw`;
    # urllib3 then releases the connection at the end.
    changes = [
        (response, "close", _with_end(response.close, end_once)),
        (response, "iter_content", iter_content_and_end),
    ]
    if hasattr(raw, "release_conn"):
        changes.append((raw, "release_conn", _with_end(raw.release_conn, end_once)))
    for owner, name, changed in changes:
        vars(owner)[name] = changed


def _with_end(
    call: Callable[[], object], end: Callable[[], object]
) -> Callable[[], None]:
    """Return a function that calls `call` and then `end`."""

    def call_and_end() -> None:
        try:
            call()
        finally:
            end()

    return call_and_end


def _end_soon(end: Callable[[], object]) -> None:
    """Call `end` in another thread, so that the garbage collector does not block."""
    with suppress(RuntimeError):  # the interpreter is shutting down
        Thread(target=end, daemon=True).start()


def _then(end: Callable[[], object], chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield from `chunks`; call `end` after the last chunk or after an error."""
    try:
        yield from chunks
    except GeneratorExit:  # the caller may continue reading later
        raise
    except BaseException:
        end()
        raise
    end()
