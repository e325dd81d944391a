"""The port for clients: what one must do so that robotsgate can fetch with it.

Our own senders have the same port. What they need besides stands in `own_fetch`, which
also marks the requests of a checker. A client may fetch pages and robots.txt alike: a
hook that asks the checker before each request must let the checker's own requests pass,
or it would wait for itself. Tasks that begin during a fetch inherit the mark, so it
lets them make no other request than the current one of the fetch.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

import anyio

from robotsgate.caching._address_guard import GuardRules
from robotsgate.errors import InvalidURLError, RobotsError
from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH
from robotsgate.urls._origin import DEFAULT_PORTS, Origin, split_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate.caching._address_guard import FetchGuard
    from robotsgate.caching._outcome import FailureKind
    from robotsgate.caching._policy import Policy

# aiohttp sends a URL without a scheme to a proxy, as if it were http.
_SCHEMES = frozenset({*DEFAULT_PORTS, "ws", "wss", ""})

# Characters of a host that clients and resolvers read in different ways.
_AMBIGUOUS = frozenset("\\%/?#@[]")

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
        task_id: the task that fetches; `None` once the fetch is over.
        hop: the URL of the current GET; empty once the fetch is over.
    """

    guard: FetchGuard
    policy: Policy
    deadline: float
    origin: Origin
    has_left_origin: bool = False
    task_id: int | None = None
    hop: str = ""

    def end(self) -> None:
        """Let no further request pass as one of this fetch."""
        self.task_id = None
        self.hop = ""

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


def is_own_request(url: str) -> bool:
    """Whether a request for `url` is one of the fetch that called the current code.

    That is each request of the task that fetches. A client may send in a task or thread
    of its own, in its own spelling: then only the current GET.

    Raises:
        InvalidURLError: `url` names no origin.
    """
    fetch = own_fetch.get(None)
    if fetch is None or not fetch.hop:
        return False
    return fetch.task_id == _task_id() or _as_asked(url) == _as_asked(fetch.hop)


def _task_id() -> int | None:
    try:
        return anyio.get_current_task().id
    except RuntimeError:  # in a thread
        return None


def _as_asked(url: str) -> tuple[Origin, bytes]:
    """`url` without the differences that are left to a client: escapes, an empty query.

    This is no spelling for rules, which must tell "/a%2Fb" from "/a/b".
    """
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 (for wraps only)

    origin, target = split_url(url)
    return origin, unquote_to_bytes(target).removesuffix(b"?")


def sent_url(scheme: str, host: str, port: int | None, target: str) -> str | None:
    """The URL of a request as a client will send it, to ask a checker about.

    Args:
        scheme: lower-case.
        host: the name or the address that the client dials, without brackets.
        port: `None` for the default.
        target: path and query as they will be sent.

    Returns:
        The URL; its origin is normalised, its target unchanged. `None` if the scheme
        has no robots.txt.

    Raises:
        InvalidURLError: there is no host, nobody can know which one, or `target` is
            not a path.
    """
    if scheme not in _SCHEMES:
        return None
    name = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{name}{'' if port is None else f':{port}'}{target}"
    if not (host.isascii() and _AMBIGUOUS.isdisjoint(host) and target[:1] == "/"):
        raise InvalidURLError(
            f"expected an unambiguous host and a path, got {url!r}", url=url
        )
    return f"{Origin.from_url(url)}{target}"


def passes_unasked(url: str) -> bool:
    """Whether a request for `url` may be sent without asking the checker.

    That holds for the checker's own requests, and for /robots.txt.

    Args:
        url: absolute; that of `sent_url` for a request of a client.

    Raises:
        InvalidURLError: `url` names no origin.
    """
    return split_url(url)[1] == ROBOTS_TXT_PATH or is_own_request(url)


def counts_as_public(address: str, policy: Policy) -> bool:
    """Whether `address` is a public one, or in `policy.allowed_networks`.

    A client for pages that refuses all other addresses when it dials has the guard
    `AddressGuard.PUBLIC_ONLY`, whatever the guard of `policy`.

    Args:
        address: of IPv4 or IPv6, without brackets.
        policy: that of the checker.

    Raises:
        ValueError: `address` is not an IP address.
    """
    return GuardRules(policy).counts_as_public(ip_address(address))


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
