"""The port for clients: what one must do so that robotsgate can fetch with it.

Our own senders have the same port. What they need besides stands in `own_fetch`, which
also marks the requests of a checker. A client may fetch pages and robots.txt alike: a
hook that asks the checker before each request must let the checker's own requests pass,
or it would wait for itself.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from robotsgate.errors import RobotsError
from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH
from robotsgate.urls._origin import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate.caching._outcome import FailureKind
    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._address_guard import FetchGuard
    from robotsgate.urls._origin import Origin

_SCHEMES = frozenset({*DEFAULT_PORTS, "ws", "wss"})

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


@dataclass(slots=True, kw_only=True)
class OwnFetch:
    """A fetch of a checker that is under way.

    Attributes:
        guard: which addresses may be dialled.
        policy: timeouts and sizes.
        deadline: of the whole fetch, by the clock of the event loop.
        origin: where the current GET goes.
        has_left_origin: whether a server chose that, now or before. The headers that
            a client adds are meant only for the origin that the caller asked about.
    """

    guard: FetchGuard
    policy: Policy
    deadline: float
    origin: Origin
    has_left_origin: bool = False

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return self.origin.key.partition("//")[2]

    @property
    def dialled_host(self) -> str:
        """The name or the address to dial, without brackets."""
        return self.origin.host.strip("[]")


own_fetch: ContextVar[OwnFetch] = ContextVar("robotsgate.own_fetch")
"""Set while a checker fetches a robots.txt."""


def is_own_request() -> bool:
    """Whether a checker called the current code in order to fetch a robots.txt."""
    return own_fetch.get(None) is not None


def passes_unasked(scheme: str, target: str) -> bool:
    """Whether a request may be sent without asking the checker.

    That holds for the checker's own requests, for /robots.txt, and for schemes that
    have no robots.txt, which the client handles.

    Args:
        scheme: that of the URL, in lower case.
        target: the path with the query, as it is sent.
    """
    return is_own_request() or target == ROBOTS_TXT_PATH or scheme not in _SCHEMES


def has_left_origin() -> bool:
    """Whether this fetch was redirected to another origin, now or before."""
    fetch = own_fetch.get(None)
    return fetch is not None and fetch.has_left_origin


def as_pairs(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as text: a value is UTF-8 if it is valid as that, else Latin-1."""
    return [(name.decode("latin-1"), _as_text(value)) for name, value in raw]


def _as_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
