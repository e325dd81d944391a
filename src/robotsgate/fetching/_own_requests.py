"""Marks the requests that a checker sends, for hooks, transports and clients.

A client may fetch pages and robots.txt alike. A hook that asks the checker before each
request must let the checker's own requests pass, or it would wait for itself. And the
headers that a client adds are meant only for the origin that the caller asked about.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH
from robotsgate.urls._origin import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMES = frozenset({*DEFAULT_PORTS, "ws", "wss"})

_is_own: ContextVar[bool] = ContextVar("robotsgate.is_own_request", default=False)
_has_left: ContextVar[bool] = ContextVar("robotsgate.has_left_origin", default=False)


def passes_unasked(scheme: str, target: str) -> bool:
    """Whether a request may be sent without asking the checker.

    That holds for the checker's own requests, for /robots.txt, and for schemes that
    have no robots.txt, which the client handles.

    Args:
        scheme: that of the URL, in lower case.
        target: the path with the query, as it is sent.
    """
    return is_own_request() or target == ROBOTS_TXT_PATH or scheme not in _SCHEMES


def is_own_request() -> bool:
    """Whether a checker called the current code in order to fetch a robots.txt."""
    return _is_own.get()


def has_left_origin() -> bool:
    """Whether this fetch was redirected to another origin, now or before."""
    return _has_left.get()


def leave_origin() -> None:
    """Mark the requests that follow in this fetch: a server chose their origin."""
    _has_left.set(True)


@contextmanager
def own_requests() -> Iterator[None]:
    """Mark all requests inside of the block, which are those of one fetch."""
    is_own, has_left = _is_own.set(True), _has_left.set(False)
    try:
        yield
    finally:
        _has_left.reset(has_left)
        _is_own.reset(is_own)
