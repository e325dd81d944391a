"""Obeys robots.txt in a session of requests. Needs the extra requests."""

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
from requests.exceptions import ChunkedEncodingError, ContentDecodingError
from urllib3.util import parse_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robotsgate import sync

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
        gate: sync.PolitenessGate | None = None,
    ) -> None:
        """Wrap an adapter.

        Args:
            checker: one of `robotsgate.sync`; close it yourself.
            agent: as in `RobotsChecker.can_fetch`.
            wrapped: sends the requests; closed with this one. `None`: an
                `HTTPAdapter`.
            gate: one of `robotsgate.sync`; gives each request its turn, which ends
                when the body has been read or the response is closed. The gate asks
                its own checker about its own agent. A request that passes without a
                question has no turn.

        Raises:
            TypeError: `checker` or `gate` is not one of `robotsgate.sync`.
        """
        check_arguments(checker, gate, is_blocking=True)
        super().__init__()
        self._checker = checker
        self._agent = agent
        self._wrapped = HTTPAdapter() if wrapped is None else wrapped
        self._gate = gate

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
        with ExitStack() as block:
            try:
                turn = enter_turn(
                    _asked_urls(request),
                    self._checker,
                    self._agent,
                    gate=self._gate,
                    block=block,
                )
            except DisallowedError as error:
                raise RobotsDisallowedError(error.verdict, request=request) from error
            except (InvalidURLError, UnsupportedError) as error:
                raise requests.exceptions.InvalidURL(
                    str(error), request=request
                ) from error
            response = self._wrapped.send(request, *arguments, **options)
            if turn is not None:
                turn.report(response)
                # Digest authentication sends its second request through that.
                response.connection = self  # type: ignore[assignment]  # any adapter
                is_streamed = any(arguments[:1]) or options.get("stream", False)
                if response.is_redirect:
                    # Requests follows one whose body is broken.
                    with suppress(ChunkedEncodingError, ContentDecodingError):
                        _ = response.content
                elif not is_streamed:
                    _ = response.content  # a hook may raise before requests reads it
                elif response.raw is not None:
                    _end_with_body(response, block.pop_all().close)
            return response

    def close(self) -> None:
        """Close the wrapped adapter."""
        self._wrapped.close()


def _end_with_body(response: requests.Response, end: Callable[[], object]) -> None:
    """Call `end` once: when the body of `response` is read, closed or lost."""
    close, iter_content = response.close, response.iter_content
    on_loss = finalize(response, _end_soon, end)
    on_loss.atexit = False

    def end_once() -> None:
        # If the response went on referring to itself, it would stay in memory.
        for name in ("close", "iter_content"):
            vars(response).pop(name, None)
        if on_loss.detach():
            end()

    def close_and_end() -> None:
        try:
            close()
        finally:
            end_once()

    # Requests reads every body through `iter_content`, whatever its adapter.
    vars(response).update(
        close=close_and_end,
        iter_content=lambda *arguments, **options: _then(
            end_once, iter_content(*arguments, **options)
        ),
    )


def _end_soon(end: Callable[[], object]) -> None:
    """Call `end` in another thread, because the garbage collector must not wait."""
    with suppress(RuntimeError):  # the interpreter exits
        Thread(target=end, daemon=True).start()


def _then(end: Callable[[], object], chunks: Iterator[Any]) -> Iterator[Any]:
    """The `chunks`; calls `end` after the last one, or after an error."""
    try:
        yield from chunks
    except GeneratorExit:  # the caller may read on
        raise
    except BaseException:
        end()
        raise
    end()


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
