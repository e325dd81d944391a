"""Shared by all integrations: the URL to check, errors, and the turn of a response."""

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
    """The error for an integration whose extra, with the same name, is missing."""
    return ImportError(
        f"robotsgate.integrations.{name} needs the extra {name}:"
        f" pip install 'robotsgate[{name}]'"
    )


def check_arguments(
    checker: object,
    agent: str | Sequence[str],
    gate: object = None,
    *,
    is_blocking: bool = False,
) -> None:
    """Check that `checker` and `gate` fit the client, and that `agent` is a crawler.

    Args:
        checker: the argument of the caller.
        agent: the argument of the caller.
        gate: the argument of the caller, or `None`.
        is_blocking: whether both must be from `robotsgate.sync`.

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
        TypeError: it is not a checker.
    """
    if isinstance(checker, RobotsChecker):
        return False
    # Imported here, because most programs do not need it.
    from robotsgate import sync  # noqa: PLC0415

    if isinstance(checker, sync.RobotsChecker):
        return True
    raise TypeError(
        "expected a robotsgate.RobotsChecker or a robotsgate.sync.RobotsChecker,"
        f" got {checker!r}"
    )


def asked_url(scheme: str, host: str, port: int | None, target: str) -> str | None:
    """The URL to check before a request; `None` if no check is needed.

    The arguments and exceptions are those of `sent_url`.
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
    """Check a request of a sync client, and wait for its turn.

    Args:
        urls: the possible URLs of the request; none if no check is needed.
        checker: checks each URL that the gate does not check.
        agent: as in `RobotsChecker.can_fetch`.
        gate: provides the turn, if there is one.
        block: the turn ends with it.

    Returns:
        The turn; `None` without a gate.

    Raises:
        DisallowedError: robots.txt does not allow one of `urls`.
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
    """A request that was not sent; also an error class of its client."""

    def __init__(self, verdict: Verdict, *, request: Any) -> None:  # noqa: ANN401 (the client's)
        super().__init__(verdict)
        self.request: Any = request

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, for process pools."""
        return partial(type(self), request=self.request), (self.verdict,)


class TurnOfResponse:
    """A turn that starts before a request and ends when the response is closed.

    Use it as an async context manager for sending the request: if that fails, the turn
    ends with the block.
    """

    def __init__(self, turn: Turn) -> None:
        """Use `turn`, which has started."""
        self._turn = turn
        self._outlives_block = False
        self._is_over = False

    @classmethod
    async def begun(
        cls, gate: PolitenessGate, url: str, *, patience: float | None = None
    ) -> Self:
        """Wait for the turn; takes and raises like `PolitenessGate.turn`."""
        return cls(await gate.turn(url, patience=patience).__aenter__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if not self._outlives_block:
            await self._end(*exc_info)

    def report(self, *, status: int, retry_after: str | None) -> None:
        """Report the response; an invalid status is treated as a failure."""
        is_status = 100 <= status <= 999  # noqa: PLR2004 (aiohttp also accepts 000)
        self._turn.report(
            status=status if is_status else None,
            retry_after=retry_after,
            failure=not is_status,
        )

    def outlive_block(self) -> None:
        """Do not end with the block, but with `aclose` or `end_soon`."""
        self._outlives_block = True

    async def aclose(self) -> None:
        """End the turn, in any task. Can be called more than once."""
        await self._end(None, None, None)

    def end_soon(self) -> None:
        """End the turn, on asyncio, where awaiting is not possible."""
        self._turn.leave_task()
        end = asyncio.create_task(self.aclose())
        _ends.add(end)
        end.add_done_callback(_ends.discard)

    async def _end(self, *exc_info: Any) -> None:  # noqa: ANN401 (of `__aexit__`)
        if not self._is_over:
            self._is_over = True
            await self._turn.__aexit__(*exc_info)


class BodyInTurn:
    """The body of a response of an `AsyncClient`, which ends the turn when closed."""

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
    """The body of a response of a `Client`, which ends the turn when closed."""

    def __init__(self, stream: Any, turn: ExitStack) -> None:  # noqa: ANN401 (the library's)
        self._stream = stream
        self._turn = turn

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def close(self) -> None:
        with self._turn:
            self._stream.close()


class HttpxClasses(NamedTuple):
    """The classes of httpx, or the classes of httpx2 with the same names."""

    error: type[DisallowedRequestError]
    url_error: type[httpx.RequestError]
    response: type[httpx.Response]
    body: Callable[[Any, TurnOfResponse], Any]
    sync_body: Callable[[Any, ExitStack], Any]
