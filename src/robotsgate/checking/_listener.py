"""Tells the callback of a caller what happened."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger


class Event(JSONValue):
    """The base of all events."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The event as JSON types: its class as "event", then its attributes."""
        return {"event": type(self).__name__} | JSONValue.as_dict(self)


_Told = TypeVar("_Told", bound=Event)


class Listener(Generic[_Told]):
    """The callback `on_event`, if there is one.

    Attributes:
        failures: how many of its calls have raised.
    """

    def __init__(
        self, on_event: Callable[[_Told], object] | None, *, logger: Logger
    ) -> None:
        """Call `on_event`, and log its exceptions with `logger`.

        Raises:
            TypeError: it cannot be called, or is a coroutine function.
        """
        is_usable = callable(on_event) and not iscoroutinefunction(on_event)
        if not (on_event is None or is_usable):
            raise TypeError(
                f"expected on_event to be a plain callable, got {on_event!r}"
            )
        self.failures = 0
        self._on_event = on_event
        self._logger = logger

    def tell(self, event: _Told) -> None:
        """Call the callback with `event`; log and count an exception."""
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # a listener may be anybody's code
            self.failures += 1
            self._logger.exception("on_event raised for %r", event)
