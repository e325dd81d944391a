"""Translates what httpx, httpcore, anyio and the socket raise into an outcome."""

from __future__ import annotations

import re
import socket
import ssl
from typing import TYPE_CHECKING

import httpx

from robotsgate.caching._outcome import Failed, FailureKind
from robotsgate.fetching._address_guard import AddressRefusedError
from robotsgate.fetching._body import CodingError

if TYPE_CHECKING:
    from collections.abc import Iterator

FETCH_ERRORS: tuple[type[Exception], ...] = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    TimeoutError,
    OSError,
    ValueError,
)
"""What reading and closing a response can raise because of the world.

ValueError is here for UnicodeError and IDNAError, which name look-ups raise.
"""

MISTAKES = (RuntimeError, TypeError, AttributeError, LookupError, AssertionError)
"""What a client raises because of its owner, and not because of the world."""

# Looked for along the chain of causes, in this order: the first that is found
# anywhere says more than the exception that carries it.
_KINDS_OF_CAUSES: tuple[tuple[type[BaseException], FailureKind], ...] = (
    (AddressRefusedError, FailureKind.ADDRESS_REFUSED),
    (socket.gaierror, FailureKind.NAME_RESOLUTION),
    (UnicodeError, FailureKind.NAME_RESOLUTION),
    (ssl.SSLError, FailureKind.TLS),
)
_KINDS: tuple[tuple[type[BaseException], FailureKind], ...] = (
    (CodingError, FailureKind.CODING),
    (httpx.DecodingError, FailureKind.CODING),
    (httpx.PoolTimeout, FailureKind.POOL),
    (httpx.TimeoutException, FailureKind.TIMEOUT),
    (TimeoutError, FailureKind.TIMEOUT),
    (httpx.ConnectError, FailureKind.CONNECT),
    (httpx.NetworkError, FailureKind.TRANSFER),
    (httpx.ProtocolError, FailureKind.PROTOCOL),
    (httpx.ProxyError, FailureKind.CONNECT),
    (OSError, FailureKind.CONNECT),
)

# How ssl asks for more octets: it stands in the context of whatever came of that.
_NO_CAUSES = (ssl.SSLWantReadError, ssl.SSLWantWriteError)

_QUOTED_OCTETS = re.compile(r"""bytearray\(|\bb['"]""")

# A chain of exceptions may be a ring, and a group may be large.
_MAX_CAUSES = 20


def failed(
    error: Exception,
    *,
    redirects: int,
    deadline: float,
    outer: BaseException | None = None,
) -> Failed:
    """The outcome that `error` stands for.

    Args:
        error: anything but one of `MISTAKES`.
        redirects: how many were followed before.
        deadline: of the whole fetch, seconds, for the text of a time-out.
        outer: what the caller of the fetch was handling; Python chains it to
            `error`, with which it has nothing to do.
    """
    causes = list(_causes(error, outer))
    kind = _first_kind(causes, _KINDS_OF_CAUSES) or _first_kind([error], _KINDS)
    text = _text(causes)
    if type(error) is TimeoutError:
        text = f"no answer within {deadline:g} s"
    elif kind is FailureKind.TIMEOUT:
        text = f"{type(error).__name__}: no answer in time"
    return Failed(
        kind=kind or FailureKind.OTHER, error=text, redirects=redirects, cause=error
    )


def _causes(
    error: BaseException, outer: BaseException | None
) -> Iterator[BaseException]:
    """`error`, what caused it, and what caused that; nothing of `outer`."""
    waiting = [error]
    for _ in range(_MAX_CAUSES):
        if not waiting:
            return
        current = waiting.pop(0)
        if not isinstance(current, _NO_CAUSES):
            yield current
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions[:_MAX_CAUSES])
        following = current.__cause__ or current.__context__
        if following is not None and following is not outer:
            waiting.append(following)


def _first_kind(
    errors: list[BaseException],
    kinds: tuple[tuple[type[BaseException], FailureKind], ...],
) -> FailureKind | None:
    for kind, failure in kinds:
        if any(isinstance(error, kind) for error in errors):
            return failure
    return None


def _text(causes: list[BaseException]) -> str:
    """What the operating system said, if it did, else the first message there is."""
    name = type(causes[0]).__name__
    said = [one for one in causes if isinstance(one, OSError) and one.errno]
    for cause in (*reversed(said), *causes):
        # What h11 quotes may be a body, a cookie or a password in a Location.
        text = _QUOTED_OCTETS.split(str(cause), maxsplit=1)[0].rstrip(" :(")
        if text:
            return f"{name}: {text}"
    return name
