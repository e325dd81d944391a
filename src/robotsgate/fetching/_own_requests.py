"""Marks the requests that a checker sends, for hooks and transports that ask one.

A client may fetch pages and robots.txt alike. A hook that asks the checker before
each request would wait for itself if it asked before those of the checker too.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_is_own: ContextVar[bool] = ContextVar("robotsgate.is_own_request", default=False)


def is_own_request() -> bool:
    """Whether the code that asks was called by a checker to fetch a robots.txt."""
    return _is_own.get()


@contextmanager
def own_requests() -> Iterator[None]:
    """Marks all requests that are sent inside of the block."""
    token = _is_own.set(True)
    try:
        yield
    finally:
        _is_own.reset(token)
