"""Shared by all integrations: the URL to check, errors, and a response's turn."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from robotsgate import DisallowedError, RobotsChecker, RobotsTxt
from robotsgate.fetching import passes_unasked, sent_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from contextlib import ExitStack

    import httpx

    from robotsgate import PolitenessGate, Turn, Verdict, sync

NO_RULES = RobotsTxt.parse(b"")

# The tasks that end turns; asyncio itself keeps only weak references to tasks.
_ends: set[asyncio.Task[None]] = set()


def missing_extra(name: str) -> ImportError:
    """The error to raise if an integration's extra, `name`, is not installed."""
    return ImportError(
        f"robotsgate.integrations.{name.replace('-', '_')} needs the {name} extra:"
        f" pip install 'robotsgate[{name}]'"
    )


def check_arguments(
    checker: object,
    agent: str | Sequence[str],
    gate: object = None,
    *,
    is_blocking: bool = False,
) -> None:
    """Check the types of `checker` and `gate`, and that `agent` names a crawler.

    Args:
        checker: the caller's argument.
        agent: the caller's argument.
        gate: the caller's argument, or `None`.
        is_blocking: whether `checker` and `gate` must come from `robotsgate.sync`.

    Raises:
        TypeError: `checker` or `gate` has the wrong type.
        InvalidProductTokenError: `agent` is not the name of a crawler.
    """
    room = import_module("robotsgate.sync" if is_blocking else "robotsgate")
    if not isinstance(checker, room.RobotsChecker):
        raise TypeError(f"expected a {room.__name__}.RobotsChecker, got {checker!r}")
    if not isinstance(gate, room.PolitenessGate | None):
        raise TypeError(
            f"expected gate to be a {room.__name__}.PolitenessGate, got {gate!r}"
        )
    NO_RULES.rules_for(agent)


def is_blocking(checker: object) -> bool:
    """Whether `checker` is from `robotsgate.sync`.

    Raises:
        TypeError: `checker` is not a checker.
    """
    if isinstance(checker, RobotsChecker):
        return False
    # Imported here because most programs do not need it.
    from robotsgate import sync  # noqa: PLC0415

    if isinstance(checker, sync.RobotsChecker):
        return True
    raise TypeError(
        "expected a robotsgate.RobotsChecker or a robotsgate.sync.RobotsChecker,"
        f" got {checker!r}"
    )


def asked_url(scheme: str, host: str, port: int | None, target: str) -> str | None:
    """The URL to check before a request; `None` if no check is needed.

    Takes the same arguments and raises the same exceptions as `sent_url`.
    """
    url = sent_url(scheme, host, port, target)
    return None if url is None or passes_unasked(url) else url


def enter_turn(
    urls: Iterable[str],
    checker: sync.RobotsChecker,
    agent: str | Sequence[str],
    *,
    gate: sync.PolitenessGate | None,
    block: ExitStack,
) -> sync.Turn | None:
    """Check a sync client's request, and wait for its turn.

    Args:
        urls: the URLs that the request may be sent to; empty if no check is needed.
        checker: checks each URL that the gate does not check.
        agent: as in `RobotsChecker.can_fetch`.
        gate: provides the turn; may be `None`.
        block: the exit stack that ends the turn.

    Returns:
        The turn; `None` without a gate.

    Raises:
        DisallowedError: robots.txt disallows one of `urls`.
    """
    rest = list(urls)
    turn = None
    if rest and gate is not None:
        turn = block.enter_context(gate.turn(rest.pop(0)))
    for url in rest:
        verdict = checker.refusal(agent, url)
        if verdict is not None:
            raise DisallowedError(verdict)
    return turn


class DisallowedRequestError(DisallowedError):
    """Raised for a refused request; subclasses also inherit from a client's error."""

    def __init__(self, verdict: Verdict, *, request: Any) -> None:  # noqa: ANN401 (the client's)
        super().__init__(verdict)
        self.request: Any = request

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, which process pools need."""
        return partial(type(self), request=self.request), (self.verdict,)


class TurnOfResponse:
    """A turn that starts before a request and ends when the response is closed.

    Use it as an async context manager around the code that sends the request; if
    sending fails, the turn ends with the block.
    """

    def __init__(self, turn: Turn) -> None:
        """Use `turn`, which must have started."""
        self._turn = turn
        self._outlives_block = False
        self._is_over = False

    @classmethod
    async def begun(
        cls, gate: PolitenessGate, url: str, *, patience: float | None = None
    ) -> Self:
        """Wait for a turn.

        Takes the same arguments and raises the same errors as `PolitenessGate.turn`.
        """
        return cls(await gate.turn(url, patience=patience).__aenter__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if not self._outlives_block:
            await self._end(*exc_info)

    def report(self, response: object) -> None:
        """See `Turn.report`."""
        self._turn.report(response)

    def outlive_block(self) -> None:
        """Make the turn outlast the block, until `aclose` or `end_soon` is called."""
        self._outlives_block = True

    async def aclose(self) -> None:
        """End the turn. Any task may call this, even more than once."""
        await self._end(None, None, None)

    def end_soon(self) -> None:
        """End the turn from code that cannot await (asyncio only)."""
        self._turn.leave_task()
        end = asyncio.create_task(self.aclose())
        _ends.add(end)
        end.add_done_callback(_ends.discard)

    async def _end(self, *exc_info: Any) -> None:  # noqa: ANN401 (`__aexit__`'s arguments)
        if not self._is_over:
            self._is_over = True
            await self._turn.__aexit__(*exc_info)


class BodyInTurn:
    """An `AsyncClient` response body that ends its turn when closed."""

    def __init__(self, stream: Any, turn: TurnOfResponse) -> None:  # noqa: ANN401 (the library's)
        self._stream = stream
        self._turn = turn

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            await self._turn.aclose()


class SyncBodyInTurn:
    """A `Client` response body that ends its turn when closed."""

    def __init__(self, stream: Any, turn: ExitStack) -> None:  # noqa: ANN401 (the library's)
        self._stream = stream
        self._turn = turn

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def close(self) -> None:
        with self._turn:
            self._stream.close()


class HttpxClasses(NamedTuple):
    """The classes from httpx, or their counterparts from httpx2."""

    error: type[DisallowedRequestError]
    url_error: type[httpx.RequestError]
    body: Callable[[Any, TurnOfResponse], Any]
    sync_body: Callable[[Any, ExitStack], Any]
