"""One turn of a host: the right to make a request, and what its end says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

from robotsgate.caching._verdict import DisallowedError
from robotsgate.checking._flights import current_task
from robotsgate.errors import TurnNotInTimeError
from robotsgate.politeness._fetch_turns import ASK_FOR_LESS
from robotsgate.politeness._schedule import TurnEnd

if TYPE_CHECKING:
    from robotsgate.politeness._ledger import Grant
    from robotsgate.politeness._turns import Turns
    from robotsgate.urls._origin import URLLike

_SAYS_NOTHING = (DisallowedError, TurnNotInTimeError)


class Turn:
    """The right to make one request to a host; `PolitenessGate.turn` gives it.

    Use it as an async context manager around the request and the reading of its
    response.

    Attributes:
        url: the one to fetch, as the caller gave it.
        grant: for the gate alone: what the ledger gave; `None` outside of the turn.
        began_at: for the gate alone: when it began, by `Clock.monotonic`.
        task: for the gate alone: the task that has entered it; `None` before that.
    """

    __slots__ = (
        "_end",
        "_is_entered",
        "_patience",
        "_retry_after",
        "_turns",
        "began_at",
        "grant",
        "task",
        "url",
    )

    def __init__(
        self, turns: Turns, url: str | URLLike, *, patience: float = math.inf
    ) -> None:
        """Make a turn that has not begun."""
        self.url = url
        self.grant: Grant | None = None
        self.began_at = -math.inf
        self.task: object = None
        self._turns = turns
        self._patience = patience
        self._is_entered = False
        self._end: TurnEnd | None = None
        self._retry_after: float | None = None

    async def __aenter__(self) -> Self:
        """Wait until the host may be asked.

        Raises:
            DisallowedError: robots.txt does not let the agent fetch the URL.
            TurnNotInTimeError: the turn does not come within the patience.
            InvalidURLError: the URL names no origin.
            UnsupportedError: the scheme is ftp, and there is a client.
            RuntimeError: the gate is closed, or the turn was entered before, or the
                same task has the turn that this one would wait for.
        """
        if self._is_entered:
            raise RuntimeError(
                "expected a turn that nobody has entered, got a used one"
            )
        self._is_entered = True
        self.task = current_task()
        if self.grant is not None and self._turns.is_overdue(self):
            await self._turns.end(self, TurnEnd.UNUSED)
        if self.grant is None:
            try:
                await self._turns.begin(self, patience=self._patience)
            except TurnNotInTimeError:
                self._turns.counts["not_in_time"] += 1
                raise
        return self

    async def __aexit__(self, _kind: object, error: object, _traceback: object) -> None:
        """End the turn.

        If nothing was reported, an exception says that the host failed. A
        `DisallowedError`, a `TurnNotInTimeError`, a cancellation or a group of these
        says nothing about the host.
        """
        end = self._end
        if end is None and error is not None:
            if isinstance(error, BaseExceptionGroup):
                error = error.split(_SAYS_NOTHING)[1]
            is_failure = isinstance(error, Exception)
            is_failure = is_failure and not isinstance(error, _SAYS_NOTHING)
            end = TurnEnd.INCIDENT if is_failure else TurnEnd.UNJUDGED
        await self._turns.end(self, end or TurnEnd.GOOD, retry_after=self._retry_after)

    def report(
        self,
        *,
        status: int | None = None,
        retry_after: str | None = None,
        failure: bool = False,
    ) -> None:
        """Say how the request went; the last report counts.

        After 429, 503 and failures, the gate leaves the host alone for a while, then
        asks it more slowly.

        Args:
            status: that of the response, 100 to 999.
            retry_after: the header, if the response has one: seconds or a date. A
                value that is neither is ignored, and an event says so.
            failure: whether there was no usable response, after a timeout for example.

        Raises:
            RuntimeError: the turn has not begun, or is over.
            TypeError: `status` is not an int, or `retry_after` not a str.
            ValueError: `status` is not within 100 to 999.
        """
        if self.grant is None or not self._is_entered:
            raise RuntimeError("expected a report within the turn, got one outside")
        _check_status(status)
        if not (retry_after is None or isinstance(retry_after, str)):
            raise TypeError(
                f"expected retry_after as the str of a header, got {retry_after!r}"
            )
        is_incident = failure or status in ASK_FOR_LESS
        self._end = TurnEnd.INCIDENT if is_incident else TurnEnd.GOOD
        self._retry_after = None
        if is_incident and retry_after is not None:
            self._retry_after = self._turns.retry_after(self.grant.host, retry_after)

    def leave_task(self) -> None:
        """Let the task that entered the turn wait for another turn of the host.

        Another task then ends this turn by `__aexit__`, for example when the
        connection of a response is released.
        """
        self.task = None

    async def give_back(self) -> None:
        """End a turn that has begun, but that no task has entered."""
        if self.grant is not None and not self._is_entered:
            await self._turns.end(self, TurnEnd.UNUSED)


def _check_status(status: object) -> None:
    if status is None:
        return
    if isinstance(status, bool) or not isinstance(status, int):
        raise TypeError(f"expected status as int, got {status!r}")
    if not 100 <= status <= 999:  # noqa: PLR2004 (three digits)
        raise ValueError(f"expected a status of three digits, got {status!r}")
