"""Shared by all integrations: what is asked, their errors, the turn of a response."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from robotsgate import DisallowedError, PolitenessGate, RobotsChecker
from robotsgate.fetching import passes_unasked, sent_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import httpx

    from robotsgate import Turn, Verdict

# The tasks that end turns; asyncio itself keeps only weak references to tasks.
_ends: set[asyncio.Task[None]] = set()


def missing_extra(name: str) -> ImportError:
    """The error for an integration whose extra, of the same name, is missing."""
    return ImportError(
        f"robotsgate.integrations.{name} needs the extra {name}:"
        f" pip install 'robotsgate[{name}]'"
    )


def check_arguments(checker: object, gate: object = None) -> None:
    """Refuse what is not a checker or a gate before the first request is sent.

    Raises:
        TypeError: `checker` is not a `robotsgate.RobotsChecker`, or `gate` is neither
            `None` nor a `PolitenessGate`.
    """
    if not isinstance(checker, RobotsChecker):
        raise TypeError(f"expected a robotsgate.RobotsChecker, got {checker!r}")
    if not isinstance(gate, PolitenessGate | None):
        raise TypeError(f"expected gate to be a PolitenessGate, got {gate!r}")


def asked_url(scheme: str, host: str, port: int | None, target: str) -> str | None:
    """The URL to ask about before a request; `None` if it passes without a question.

    Takes and raises as `sent_url`.
    """
    url = sent_url(scheme, host, port, target)
    return None if url is None or passes_unasked(url) else url


class DisallowedRequestError(DisallowedError):
    """A request that was not sent; also an error of its client."""

    def __init__(self, verdict: Verdict, *, request: Any) -> None:  # noqa: ANN401 (the client's)
        super().__init__(verdict)
        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), request=self.request), (self.verdict,)


class TurnOfResponse:
    """A turn that has begun before a request, and ends when the response is closed.

    Use it as an async context manager around the sending: if that fails, the turn ends
    with the block.
    """

    def __init__(self, turn: Turn) -> None:
        """Use `turn`, which has begun."""
        self._turn = turn
        self._outlives_block = False
        self._is_over = False

    @classmethod
    async def begun(
        cls, gate: PolitenessGate, url: str, *, patience: float | None = None
    ) -> Self:
        """Wait for the turn; takes and raises as `PolitenessGate.turn`."""
        return cls(await gate.turn(url, patience=patience).__aenter__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if not self._outlives_block:
            await self._end(*exc_info)

    def report(self, *, status: int, retry_after: str | None) -> None:
        """Report the response; a status that cannot be one counts as a failure."""
        is_status = 100 <= status <= 999  # noqa: PLR2004 (aiohttp takes 000 too)
        self._turn.report(
            status=status if is_status else None,
            retry_after=retry_after,
            failure=not is_status,
        )

    def outlive_block(self) -> None:
        """Do not end with the block, but by `aclose` or `end_soon`."""
        self._outlives_block = True

    async def aclose(self) -> None:
        """End the turn, in any task; may be called more than once."""
        await self._end(None, None, None)

    def end_soon(self) -> None:
        """End the turn, on asyncio, where nothing can be awaited."""
        self._turn.leave_task()
        end = asyncio.create_task(self.aclose())
        _ends.add(end)
        end.add_done_callback(_ends.discard)

    async def _end(self, *exc_info: Any) -> None:  # noqa: ANN401 (of `__aexit__`)
        if not self._is_over:
            self._is_over = True
            await self._turn.__aexit__(*exc_info)


class BodyInTurn:
    """The body of a response of httpx or httpx2; when it is closed, the turn ends."""

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


class HttpxClasses(NamedTuple):
    """The classes of httpx, or those of httpx2, which have the same names."""

    error: type[DisallowedRequestError]
    url_error: type[httpx.RequestError]
    response: type[httpx.Response]
    body: Callable[[Any, TurnOfResponse], Any]
