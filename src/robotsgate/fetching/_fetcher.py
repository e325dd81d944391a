"""The port for clients: what one must do so that robotsgate can fetch with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from robotsgate.errors import RobotsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._outcome import FailureKind

NEVER_SENT = (
    "authorization",
    "cookie",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "proxy-authorization",
    "range",
)
"""Headers of a client that identify somebody or make a GET conditional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedResponse:
    """One response, as far as it was read.

    Attributes:
        status: 100 to 999.
        headers: pairs (name, value) in the order of arrival; names in any case.
        body: may be empty if the status is neither 2xx nor 5xx.
        is_decoded: whether the client has undone the content coding of `body`.
    """

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    is_decoded: bool


class Fetcher(Protocol):
    """Sends single GETs; pass one as `RobotsChecker(client=...)`.

    The checker sets the deadline, follows the redirects and decides what a response
    means. It cancels `get` when the deadline passes; `get` must leave nothing open
    then.
    """

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """The response to a GET of `url`.

        Follows no redirect, and sends no cookies, credentials or conditions.

        Args:
            url: absolute, http or https, ASCII, without userinfo and fragment; send
                it unchanged.
            headers: pairs (name, value) to send, in place of the client's own.
            max_bytes: after how many bytes to stop reading the body, coded or
                decoded; the last read may bring more.

        Raises:
            FetchFailedError: no usable response came.
        """
        ...


class FetchFailedError(RobotsError):
    """A GET that brought no usable response; only a `Fetcher` raises it.

    The checker turns it into an answer and never raises it.

    Attributes:
        kind: where the GET failed.
    """

    def __init__(self, message: str, *, kind: FailureKind) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), kind=self.kind), self.args
