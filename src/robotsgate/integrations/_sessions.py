"""Code shared by the requests and niquests adapters; imports neither library."""

from __future__ import annotations

import abc
from contextlib import ExitStack, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import finalize

from robotsgate import DisallowedError, InvalidURLError, UnsupportedError
from robotsgate.integrations._wrapping import check_arguments, enter_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robotsgate import sync
    from robotsgate.integrations._wrapping import DisallowedRequestError


class SessionErrors(NamedTuple):
    """The exception classes from requests or niquests."""

    refusal: type[DisallowedRequestError]
    url_error: Callable[..., Exception]
    broken_body: tuple[type[Exception], ...]


class SessionAdapter(abc.ABC):
    """A session adapter; subclasses also inherit from their library's `BaseAdapter`."""

    _errors: ClassVar[SessionErrors]

    def __init__(
        self,
        checker: sync.RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: Any,  # noqa: ANN401 (the library's BaseAdapter)
        gate: sync.PolitenessGate | None,
    ) -> None:
        check_arguments(checker, agent, gate, is_blocking=True)
        super().__init__()
        self._checker = checker
        self._agent = agent
        self._wrapped = wrapped
        self._gate = gate

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 (BaseAdapter.send's arguments)
        """Send `request` through the wrapped adapter if it is allowed.

        Raises:
            RobotsDisallowedError: the request is disallowed.
            InvalidURL: the checker does not support the URL; this is the library's own
                class.
        """
        errors = self._errors
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
                raise errors.refusal(error.verdict, request=request) from error
            except (InvalidURLError, UnsupportedError) as error:
                raise errors.url_error(str(error), request=request) from error
            response = self._wrapped.send(request, *arguments, **options)
            if turn is not None:
                turn.report(response)
                # Digest authentication sends its second request through this
                # connection.
                response.connection = self
                is_streamed = any(arguments[:1]) or options.get("stream", False)
                if response.is_redirect:
                    # A session follows a redirect even if its body is broken.
                    with suppress(*errors.broken_body):
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

    @abc.abstractmethod
    def _asked_urls(self, request: Any) -> Iterator[str]:  # noqa: ANN401 (a PreparedRequest)
        """The URLs that `request` may be sent to; no URLs if no check is needed.

        Raises:
            InvalidURLError: the request's URL has no origin, or its origin is
                ambiguous.
        """


def _end_with_body(response: Any, end: Callable[[], object]) -> None:  # noqa: ANN401 (the library's)
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

    # requests reads every body through `iter_content`, whatever the adapter. niquests
    # reads some bodies through urllib3-future, which releases the connection at the
    # end.
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
