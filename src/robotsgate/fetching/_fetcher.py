"""The fetcher protocol: everything needed to fetch with another HTTP client.

A fetcher returns a response or raises an exception, which becomes a failure of some
kind. The built-in fetchers implement the protocol as well. They get further details
from `own_fetch`, which also marks a checker's own requests. A client may fetch both
pages and robots.txt: a hook that calls the checker before each request must let the
checker's own requests pass, or it would wait for itself. Tasks started during a fetch
inherit the mark, but it permits them only the fetch's current request.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio

from robotsgate._flights import current_task, is_no_thread
from robotsgate._public import set_module
from robotsgate.caching._hops import is_public
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.errors import InvalidURLError, RobotsError
from robotsgate.robotstxt._matcher import ROBOTS_TXT_PATH
from robotsgate.urls._url import DEFAULT_PORTS, Origin, split_url

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Sequence,
    )

    from robotsgate._flights import DaemonThreads
    from robotsgate.caching._hops import FetchGuard
    from robotsgate.caching._outcome import Redirects
    from robotsgate.caching._policy import Policy

_Result = TypeVar("_Result")

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

MISTAKES = (RuntimeError, TypeError, AttributeError, LookupError, AssertionError)
"""Client exceptions that indicate a programming error, not a network failure."""

# Both tables are keyed by the name of a class or base class, because no client need be
# installed, and httpx, httpx2 and httpcore have classes with the same names.

# Searched for in the whole chain of causes, in this order. Such a cause is more
# specific than the exception it led to.
_KINDS_OF_CAUSES = {
    "AddressRefusedError": FailureKind.ADDRESS_REFUSED,
    "gaierror": FailureKind.NAME_RESOLUTION,
    "UnicodeError": FailureKind.NAME_RESOLUTION,
    "SSLError": FailureKind.TLS,
    "OpenSSL.SSL.Error": FailureKind.TLS,
    "ConnectionClosed": FailureKind.TRANSFER,  # Twisted's
}

# Searched for in the classes of the exception itself, the most specific first.
_KINDS = {
    "CodingError": FailureKind.CODING,
    "ConnectionError": FailureKind.CONNECT,
    "InvalidURL": FailureKind.OTHER,
    "TimeoutError": FailureKind.TIMEOUT,
    "TooManyRedirects": FailureKind.OTHER,
    # httpx, httpx2 and httpcore
    "ConnectError": FailureKind.CONNECT,  # Twisted's too
    "DecodingError": FailureKind.CODING,
    "LocalProtocolError": FailureKind.OTHER,
    "NetworkError": FailureKind.TRANSFER,
    "PoolTimeout": FailureKind.LOCAL,
    "ProtocolError": FailureKind.PROTOCOL,
    "ProxyError": FailureKind.CONNECT,
    "TimeoutException": FailureKind.TIMEOUT,
    "UnsupportedProtocol": FailureKind.OTHER,
    # aiohttp
    "ClientConnectionError": FailureKind.TRANSFER,
    "ClientConnectorDNSError": FailureKind.NAME_RESOLUTION,
    "ClientConnectorError": FailureKind.CONNECT,
    "ClientHttpProxyError": FailureKind.CONNECT,
    "ClientPayloadError": FailureKind.PROTOCOL,
    "ClientResponseError": FailureKind.PROTOCOL,
    "ServerFingerprintMismatch": FailureKind.TLS,
    "ServerTimeoutError": FailureKind.TIMEOUT,
    # requests, urllib3 and urllib
    "ChunkedEncodingError": FailureKind.PROTOCOL,
    "MaxRetryError": FailureKind.CONNECT,
    "RetryError": FailureKind.CONNECT,
    "Timeout": FailureKind.TIMEOUT,  # curl_cffi's too
    "URLError": FailureKind.CONNECT,
    "http.client.HTTPException": FailureKind.PROTOCOL,
    # curl_cffi and impit, whose names for an invalid response say something else
    "curl_cffi.requests.exceptions.HTTPError": FailureKind.PROTOCOL,
    "curl_cffi.requests.exceptions.InvalidSchema": FailureKind.PROTOCOL,
    "impit.HTTPError": FailureKind.PROTOCOL,
    # Scrapy
    "CannotResolveHostError": FailureKind.NAME_RESOLUTION,
    "DownloadConnectionRefusedError": FailureKind.CONNECT,
    "DownloadFailedError": FailureKind.PROTOCOL,
    "DownloadTimeoutError": FailureKind.TIMEOUT,
}

# The packages whose exceptions of these names are failures of the network. Others, such
# as those for databases, use the same names.
_NETWORK_PACKAGES = frozenset({
    "aiohttp", "builtins", "curl_cffi", "h11", "http", "httpcore", "httpx", "httpx2",
    "impit", "requests", "urllib", "urllib3",
})  # fmt: skip

_NO_NETWORK_FAILURES = (FailureKind.CODING, FailureKind.LOCAL, FailureKind.OTHER)

# This machine has run out of something, whatever the address.
_LOCAL_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

# A proxy might have helped.
_UNCONNECTED = (FailureKind.NAME_RESOLUTION, FailureKind.CONNECT)

# ssl raises these to request more bytes. They become the context of later exceptions.
_NO_CAUSES = (ssl.SSLWantReadError, ssl.SSLWantWriteError)

_QUOTED_BYTES = re.compile(r"""bytearray\(|\bb['"]""")

# A chain of exceptions may be circular, and a group may be large.
_MAX_CAUSES = 20


@set_module("robotsgate")
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


@set_module("robotsgate")
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


@set_module("robotsgate")
class FetchFailedError(RobotsError):
    """Raised by a `Fetcher` if a GET has no usable response.

    The checker handles this error and never raises it.

    Attributes:
        kind: where the GET failed.
    """

    def __init__(self, message: str, *, kind: FailureKind) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


@dataclass(slots=True, kw_only=True)
class OwnFetch:
    """A checker's running fetch."""

    guard: FetchGuard
    policy: Policy
    threads: DaemonThreads
    deadline: float  # of the whole fetch, by the event loop's clock
    origin: Origin  # of the current GET
    has_left_origin: bool = False  # ever, after which the client's headers are not sent
    task: object = None
    hop: str = ""  # the URL of the current GET; empty once the fetch is over

    def queue_timeout(self) -> float:
        """How long to wait for a free connection or thread, in seconds.

        Less than the time left, because the origin would be blamed for a missed
        deadline.
        """
        return (self.deadline - anyio.current_time()) / 2

    async def begin(self, work: Callable[[], _Result]) -> Awaitable[_Result]:
        """Wait until a thread begins `work`; the result can then be awaited."""
        with suppress(TimeoutError):
            return await self.threads.begin(work, self.queue_timeout())
        raise FetchFailedError("no thread was free in time", kind=FailureKind.LOCAL)

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
    with suppress(RuntimeError):  # in a thread
        if fetch.task is current_task():
            return True
    return _as_asked(url) == _as_asked(fetch.hop)


def _as_asked(url: str) -> tuple[Origin, bytes]:
    """`url` without client-specific differences, such as escapes or an empty query.

    Do not use this for rules, which must distinguish "/a%2Fb" from "/a/b".
    """
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 (only for wrappers)

    origin, target = split_url(url)
    return origin, unquote_to_bytes(target).removesuffix(b"?")


@set_module("robotsgate.fetching")
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


@set_module("robotsgate.fetching")
def passes_unasked(url: str) -> bool:
    """Whether a request for `url` may be sent without calling the checker.

    This applies to the checker's own requests, and to /robots.txt.

    Args:
        url: absolute; for a client's request, the result of `sent_url`.

    Raises:
        InvalidURLError: `url` has no origin.
    """
    return split_url(url)[1] == ROBOTS_TXT_PATH or is_own_request(url)


@set_module("robotsgate.fetching")
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
    return is_public(ip_address(address), policy)


@set_module("robotsgate.fetching")
def has_left_origin() -> bool:
    """Whether the current fetch has ever been redirected to another origin."""
    fetch = own_fetch.get(None)
    return fetch is not None and fetch.has_left_origin


@set_module("robotsgate.fetching")
def as_pairs(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as text: values are decoded as UTF-8 if valid, otherwise as Latin-1."""
    return [(name.decode("latin-1"), _as_text(value)) for name, value in raw]


def _as_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def outcome_of(
    error: Exception,
    *,
    redirects: Redirects,
    deadline: float,
    outer: BaseException | None = None,
    ignored_proxy: str | None = None,
) -> Outcome:
    """The outcome for `error`; for one of `MISTAKES`, only a LOCAL outcome counts.

    The message mentions the `deadline` of the whole fetch, in seconds, and the
    environment variable of an `ignored_proxy`. `outer` is the exception that the
    fetch's caller was handling; Python makes it the context of `error`, but it is not a
    cause.
    """
    causes = list(_causes(error, outer))
    kind = _kind(error, causes)
    if isinstance(error, FetchFailedError):
        causes = causes[1:] or causes  # the cause is more specific
    text = _text(causes)
    if type(error) is TimeoutError and not error.args:
        text = f"no response within {deadline:g} s"
    elif kind is FailureKind.TIMEOUT and not str(causes[0]):
        text = f"{type(causes[0]).__name__}: no response in time"
    if ignored_proxy and (
        kind in _UNCONNECTED or type(error).__name__ == "ConnectTimeout"
    ):
        text += f"; the checker used no proxy, although {ignored_proxy} is set"
    return Outcome(failure=kind, error=text, redirects=redirects, cause=error)


@set_module("robotsgate.fetching")
def failure_kind(error: Exception) -> FailureKind:
    """The kind of failure that an exception from a client means.

    Knows httpx, httpx2, aiohttp, requests, curl_cffi, urllib, Scrapy, and sockets;
    OTHER for any other exception.
    """
    return _kind(error, list(_causes(error, None)))


def is_network_failure(error: BaseException) -> bool:
    """Whether an exception from any code is an HTTP client's, and the network's fault.

    Unlike for a fetcher's exceptions, other code may have raised it. So only the
    exception's own classes count, which must belong to a client, not its causes. Files
    raise OSErrors, too, so a plain OSError does not count.
    """
    if _is_local(list(_causes(error, None))):
        return False
    for name in _class_names(error, _NETWORK_PACKAGES):
        if name in _KINDS:
            return _KINDS[name] not in _NO_NETWORK_FAILURES
    return isinstance(error, socket.gaierror | ssl.SSLError)


def _causes(
    error: BaseException, outer: BaseException | None
) -> Iterator[BaseException]:
    """`error` and its chain of causes, without `outer`."""
    waiting = [error]
    for _ in range(_MAX_CAUSES):
        if not waiting:
            return
        current = waiting.pop(0)
        if not isinstance(current, _NO_CAUSES):
            yield current
        if type(current).__module__.startswith("twisted."):
            reasons = getattr(current, "reasons", ())  # a lost connection's exceptions
            waiting.extend(reason.value for reason in reasons)
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions[:_MAX_CAUSES])
        following = current.__cause__ or current.__context__
        if following is not None and following is not outer:
            waiting.append(following)


def _kind(error: Exception, causes: list[BaseException]) -> FailureKind:
    if _is_local(causes):
        return FailureKind.LOCAL
    if isinstance(error, FetchFailedError):
        return error.kind
    names = {name for cause in causes for name in _class_names(cause)}
    for name, kind in _KINDS_OF_CAUSES.items():
        if name in names:
            return kind
    for name in _class_names(error):
        if name in _KINDS:
            return _KINDS[name]
    return FailureKind.CONNECT if isinstance(error, OSError) else FailureKind.OTHER


def _is_local(causes: list[BaseException]) -> bool:
    """Whether this machine could not send the request.

    EADDRNOTAVAIL means that no port is free, unless another address failed otherwise:
    it may also mean that the machine has no address of a family.
    """
    numbers = {one.errno for one in causes if isinstance(one, OSError) and one.errno}
    is_without_memory = any(
        isinstance(one, socket.gaierror) and one.errno == socket.EAI_MEMORY
        for one in causes
    )
    return bool(
        numbers & _LOCAL_ERRORS
        or numbers == {errno.EADDRNOTAVAIL}
        or is_without_memory
        or any(map(is_no_thread, causes))
    )


def _class_names(
    error: BaseException, packages: Collection[str] | None = None
) -> Iterator[str]:
    """The names of the classes of `error`, without and with their module.

    If `packages` are given, only of the classes that they define.
    """
    for kind in type(error).mro():
        if packages is None or kind.__module__.partition(".")[0] in packages:
            yield kind.__name__
            yield f"{kind.__module__}.{kind.__name__}"


def _text(causes: list[BaseException]) -> str:
    """The operating system's message if there is one, otherwise the first message."""
    name = type(causes[0]).__name__
    said = [one for one in causes if isinstance(one, OSError) and one.errno]
    for cause in (*reversed(said), *causes):
        # h11 may quote a body, a cookie or a password in a Location.
        text = _QUOTED_BYTES.split(str(cause), maxsplit=1)[0].rstrip(" :(")
        if text:
            return f"{name}: {text}"
    return name
