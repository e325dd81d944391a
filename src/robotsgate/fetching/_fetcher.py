"""The fetcher protocol: everything needed to fetch with another HTTP client.

The built-in fetchers implement this protocol as well. They get further details from
`own_fetch`, which also marks a checker's own requests. A client may fetch both pages
and robots.txt: a hook that calls the checker before each request must let the checker's
own requests pass, or it would wait for itself. Tasks started during a fetch inherit the
mark, but it permits them only the fetch's current request.
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
from robotsgate.robotstxt._matcher import ROBOTS_TXT_PATH
from robotsgate.urls._url import DEFAULT_PORTS, Origin, split_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate.caching._address_guard import FetchGuard
    from robotsgate.caching._outcome import FailureKind
    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._threads import DaemonThreads

# aiohttp sends a URL without a scheme to a proxy, as if it were http.
_SCHEMES = frozenset({*DEFAULT_PORTS, "ws", "wss", ""})

# Characters in a host that clients and resolvers interpret differently.
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
"""Client headers that identify someone or make a GET conditional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedResponse:
    """One response, with as much of its body as was read.

    Attributes:
        status: 100 to 999.
        headers: (name, value) pairs in the order they were received; names may be in
            any letter case.
        body: may be empty if the status is neither 2xx nor 5xx.
        is_decoded: whether the client has already decompressed `body`.
    """

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    is_decoded: bool


class Fetcher(Protocol):
    """Sends individual GETs; pass a fetcher as `RobotsChecker(client=...)`.

    The checker enforces the deadline, follows redirects and interprets responses. It
    cancels `get` at the deadline; `get` must then leave nothing open.
    """

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """Send a GET for `url`, and return the response.

        Do not follow redirects or send cookies, credentials or conditional headers.

        Args:
            url: absolute, http or https, ASCII, without userinfo or a fragment; send it
                unchanged.
            headers: (name, value) pairs to send instead of the client's own headers.
            max_bytes: stop reading the body after this many bytes, compressed or
                decompressed; the last read may exceed the limit.

        Raises:
            FetchFailedError: there was no usable response.
        """
        ...


class FetchFailedError(RobotsError):
    """Raised by a `Fetcher` if a GET has no usable response.

    The checker handles this error and never raises it.

    Attributes:
        kind: where the GET failed.
    """

    def __init__(self, message: str, *, kind: FailureKind) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, which process pools need."""
        return partial(type(self), kind=self.kind), self.args


@dataclass(slots=True, kw_only=True)
class OwnFetch:
    """A checker's running fetch.

    Attributes:
        guard: the fetch's address guard.
        policy: timeouts and sizes.
        threads: for blocking calls.
        deadline: the deadline of the whole fetch, by the event loop's clock.
        origin: the origin of the current GET.
        has_left_origin: whether the fetch has ever been redirected to another origin.
            The client's own headers are meant only for the original origin.
        task_id: the ID of the fetching task; `None` once the fetch is over.
        hop: the URL of the current GET; empty once the fetch is over.
    """

    guard: FetchGuard
    policy: Policy
    threads: DaemonThreads
    deadline: float
    origin: Origin
    has_left_origin: bool = False
    task_id: int | None = None
    hop: str = ""

    def queue_timeout(self) -> float:
        """How long to wait for a free connection or thread, in seconds.

        Less than the time left, because the origin would be blamed for a missed
        deadline.
        """
        return (self.deadline - anyio.current_time()) / 2

    def end(self) -> None:
        """Stop letting requests through as part of this fetch."""
        self.task_id = None
        self.hop = ""

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return self.origin.key.partition("//")[2]

    @property
    def dialled_host(self) -> str:
        """The name or address to connect to, without brackets."""
        return self.origin.host.strip("[]")


own_fetch: ContextVar[OwnFetch] = ContextVar("robotsgate.own_fetch")
"""Set while a checker is fetching a robots.txt."""


def is_own_request(url: str) -> bool:
    """Whether a request for `url` is part of the current robots.txt fetch.

    In the fetching task, every request is part of the fetch. In any other task or
    thread, only the current GET is, and the client may have normalized its URL.

    Raises:
        InvalidURLError: `url` has no origin.
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
    """`url` without client-specific differences, such as escapes or an empty query.

    Do not use this for rules, which must distinguish "/a%2Fb" from "/a/b".
    """
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 (only for wrappers)

    origin, target = split_url(url)
    return origin, unquote_to_bytes(target).removesuffix(b"?")


def sent_url(scheme: str, host: str, port: int | None, target: str) -> str | None:
    """The URL of a request as a client will send it, to pass to the checker.

    Args:
        scheme: lower-case.
        host: the name or address that the client connects to, without brackets.
        port: `None` for the scheme's default.
        target: the path and query as they will be sent.

    Returns:
        The URL, with a normalized origin and an unchanged target. `None` if the scheme
        has no robots.txt.

    Raises:
        InvalidURLError: the host is missing or ambiguous, or `target` is not a path.
    """
    if scheme not in _SCHEMES:
        return None
    name = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{name}{'' if port is None else f':{port}'}{target}"
    url = url.removeprefix("://")  # a relative URL
    if not (host.isascii() and _AMBIGUOUS.isdisjoint(host) and target[:1] == "/"):
        raise InvalidURLError(
            f"expected an unambiguous host and a path, got {url!r}", url=url
        )
    return f"{Origin.from_url(url)}{target}"


def passes_unasked(url: str) -> bool:
    """Whether a request for `url` may be sent without calling the checker.

    This applies to the checker's own requests, and to /robots.txt.

    Args:
        url: absolute; for a client's request, the result of `sent_url`.

    Raises:
        InvalidURLError: `url` has no origin.
    """
    return split_url(url)[1] == ROBOTS_TXT_PATH or is_own_request(url)


def counts_as_public(address: str, policy: Policy) -> bool:
    """Whether `address` is public, or in `policy.allowed_networks`.

    A page client that refuses to connect to any other address gives the same protection
    as `AddressGuard.PUBLIC_ONLY`, whatever guard `policy` sets.

    Args:
        address: an IPv4 or IPv6 address, without brackets.
        policy: the checker's policy.

    Raises:
        ValueError: `address` is not an IP address.
    """
    return GuardRules(policy).counts_as_public(ip_address(address))


def has_left_origin() -> bool:
    """Whether the current fetch has ever been redirected to another origin."""
    fetch = own_fetch.get(None)
    return fetch is not None and fetch.has_left_origin


def as_pairs(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as text: values are decoded as UTF-8 if valid, otherwise as Latin-1."""
    return [(name.decode("latin-1"), _as_text(value)) for name, value in raw]


def _as_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
