"""Translates exceptions from clients, h11, anyio and sockets into outcomes."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from typing import TYPE_CHECKING

from robotsgate._flights import is_no_thread
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.fetching._fetcher import FetchFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate.caching._outcome import Redirects

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
    "OSError": FailureKind.CONNECT,
    "TimeoutError": FailureKind.TIMEOUT,
    # httpx, httpx2 and httpcore
    "ConnectError": FailureKind.CONNECT,  # Twisted's too
    "DecodingError": FailureKind.CODING,
    "NetworkError": FailureKind.TRANSFER,
    "PoolTimeout": FailureKind.LOCAL,
    "ProtocolError": FailureKind.PROTOCOL,
    "ProxyError": FailureKind.CONNECT,
    "TimeoutException": FailureKind.TIMEOUT,
    # aiohttp
    "ClientConnectionError": FailureKind.TRANSFER,
    "ClientConnectorDNSError": FailureKind.NAME_RESOLUTION,
    "ClientConnectorError": FailureKind.CONNECT,
    "ClientHttpProxyError": FailureKind.CONNECT,
    "ClientPayloadError": FailureKind.PROTOCOL,
    "ClientResponseError": FailureKind.PROTOCOL,
    "ServerFingerprintMismatch": FailureKind.TLS,
    "ServerTimeoutError": FailureKind.TIMEOUT,
    # Scrapy
    "CannotResolveHostError": FailureKind.NAME_RESOLUTION,
    "DownloadConnectionRefusedError": FailureKind.CONNECT,
    "DownloadFailedError": FailureKind.PROTOCOL,
    "DownloadTimeoutError": FailureKind.TIMEOUT,
}

# This machine has no more of something, whatever the address.
_LOCAL_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

# A proxy might have helped.
_UNCONNECTED = (FailureKind.NAME_RESOLUTION, FailureKind.CONNECT)

# ssl raises these to request more bytes. They become the context of later exceptions.
_NO_CAUSES = (ssl.SSLWantReadError, ssl.SSLWantWriteError)

_QUOTED_BYTES = re.compile(r"""bytearray\(|\bb['"]""")

# A chain of exceptions may be circular, and a group may be large.
_MAX_CAUSES = 20


def outcome_of(
    error: Exception,
    *,
    redirects: Redirects,
    deadline: float,
    outer: BaseException | None = None,
    ignored_proxy: str | None = None,
) -> Outcome:
    """The outcome for `error`.

    Args:
        error: any exception; for one of `MISTAKES`, only a LOCAL outcome counts.
        redirects: the redirects that were followed before the error.
        deadline: the time limit for the whole fetch, in seconds, for timeout messages.
        outer: the exception that the fetch's caller was handling. Python makes it the
            context of `error`, but it is not a cause.
        ignored_proxy: the environment variable for a proxy that the fetch did not use,
            if any.
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


def failure_kind(error: Exception) -> FailureKind:
    """The kind of failure that an exception from a client means.

    Knows httpx, httpx2, aiohttp, Scrapy, and sockets; OTHER for any other exception.
    """
    return _kind(error, list(_causes(error, None)))


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
    return FailureKind.OTHER


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


def _class_names(error: BaseException) -> Iterator[str]:
    """The names of the classes of `error`, without and with their module."""
    for kind in type(error).mro():
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
