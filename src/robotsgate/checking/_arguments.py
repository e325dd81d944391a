"""Validates a checker's arguments."""

from __future__ import annotations

import warnings
from os import PathLike

from robotsgate._version import __version__
from robotsgate.errors import StoreError
from robotsgate.stores._base import Store

_DEFAULT_USER_AGENT = f"robotsgate/{__version__}"
_NO_USER_AGENT = (
    "expected the user_agent of your crawler, such as"
    " 'ExampleBot/1.0 (+https://example.org/bot)': servers may treat"
    f" {_DEFAULT_USER_AGENT!r} differently"
)
_CLOCK_METHODS = ("now", "monotonic", "wait")


def user_agent_of(user_agent: str | None, client: object) -> str:
    """`user_agent`, or a default (with a warning if `client` uses the network)."""
    if user_agent is not None:
        return user_agent
    if not getattr(client, "dials_nothing", False):
        warnings.warn(_NO_USER_AGENT, stacklevel=3)
    return _DEFAULT_USER_AGENT


def check_clock(clock: object) -> None:
    """Raise a TypeError unless `clock` is a `Clock`."""
    if not all(callable(getattr(clock, name, None)) for name in _CLOCK_METHODS):
        raise TypeError(
            f"expected clock to have now, monotonic and wait, got {clock!r}"
        )


def check_store(store: object) -> None:
    """Check that `store` is a store, a URL, a path or `None`.

    Raises:
        StoreError: `store` is none of these.
    """
    if store is None or isinstance(store, str | PathLike):
        return
    if isinstance(store, type) or not isinstance(store, Store):
        raise StoreError(
            "expected a store with the methods of Store, a URL, or the path of a file,"
            f" got {store!r}"
        )
