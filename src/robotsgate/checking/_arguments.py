"""Checks what a caller hands over when a checker is made; each error names it."""

from __future__ import annotations

from inspect import iscoroutinefunction

from robotsgate.errors import StoreError
from robotsgate.stores._base import Store
from robotsgate.urls._origin import without_userinfo


def check_user_agent(value: object) -> None:
    """Refuse what cannot be sent as a User-Agent header."""
    if not isinstance(value, str):
        message = f"expected user_agent as str, got {value!r}"
        raise TypeError(message)
    if not (value.strip() == value != "" and value.isascii() and value.isprintable()):
        message = f"expected user_agent in printable ASCII, got {value!r}"
        raise ValueError(message)


def check_type(name: str, value: object, kind: type) -> None:
    """Refuse what is not of `kind`."""
    if not isinstance(value, kind):
        message = f"expected {name} to be a {kind.__name__}, got {value!r}"
        raise TypeError(message)


def check_urls(value: object) -> None:
    """Refuse a single URL where several are expected."""
    if isinstance(value, str | bytes):
        shown = without_userinfo(str(value))
        raise TypeError(f"expected several URLs, got the single {shown!r}")


def check_store(store: object) -> None:
    """Refuse what is neither `None` nor a URL nor a store."""
    if isinstance(store, str):
        return
    if store is not None and (isinstance(store, type) or not isinstance(store, Store)):
        message = f"expected a store with the methods of Store, or a URL, got {store!r}"
        raise StoreError(message)


def check_clock(clock: object) -> None:
    """Refuse what cannot be asked for the time, or cannot wait."""
    for name in ("now", "monotonic", "wait"):
        if not callable(getattr(clock, name, None)):
            raise TypeError(f"expected clock with a method {name}, got {clock!r}")


def check_listener(value: object) -> None:
    """Refuse anything but `None` and a function that can be called and is done."""
    if value is None:
        return
    if not callable(value) or iscoroutinefunction(value):
        message = f"expected on_event to be a plain callable, got {value!r}"
        raise TypeError(message)


def check_bound(name: str, value: object) -> None:
    """Refuse what is no int of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"expected {name} as int, got {value!r}"
        raise TypeError(message)
    if value < 1:
        message = f"expected {name} of 1 or more, got {value!r}"
        raise ValueError(message)
