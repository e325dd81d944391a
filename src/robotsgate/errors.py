"""The exceptions that robotsgate raises.

RobotsError
├── InvalidURLError           (also a ValueError)
├── InvalidProductTokenError  (also a ValueError)
├── UnsupportedError
├── StoreError
├── FetchFailedError          (fetching/_fetcher.py: raised by a Fetcher)
├── DisallowedError           (caching/_verdict.py: contains a Verdict)
├── TurnDeadlockError         (also a RuntimeError)
├── TurnNotInTimeError
└── RetriesExhaustedError     (only in a `URLSkipped` event)

A dead host, a malformed robots.txt or a refused connection leads to a `Verdict`, not to
an exception.
Two of the exceptions are defined elsewhere, in layers above this one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from robotsgate._public import set_module

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "InvalidProductTokenError",
    "InvalidURLError",
    "RetriesExhaustedError",
    "RobotsError",
    "StoreError",
    "TurnDeadlockError",
    "TurnNotInTimeError",
    "UnsupportedError",
]


@set_module("robotsgate")
class RobotsError(Exception):
    """The base class of all exceptions raised by robotsgate."""

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, for process pools, whatever arguments `__init__` has."""
        return _without_init, (type(self), self.args), vars(self)


def _without_init(kind: type[RobotsError], args: tuple[object, ...]) -> RobotsError:
    return kind.__new__(kind, *args)


@set_module("robotsgate")
class InvalidURLError(RobotsError, ValueError):
    """A URL without an origin: relative, malformed, or with an unsupported scheme.

    Attributes:
        url: the value passed by the caller; it may contain a password, which the
            message does not show.
    """

    def __init__(self, message: str, *, url: object) -> None:
        super().__init__(message)
        self.url: object = url


@set_module("robotsgate")
class InvalidProductTokenError(RobotsError, ValueError):
    """An agent without a product token (RFC 9309 §2.2.1).

    Attributes:
        agent: the value passed by the caller; it may contain a password, which the
            message does not show.
    """

    def __init__(self, message: str, *, agent: object) -> None:
        super().__init__(message)
        self.agent: object = agent


@set_module("robotsgate")
class UnsupportedError(RobotsError):
    """Something that robotsgate does not support, such as FTP with a custom client."""


@set_module("robotsgate")
class StoreError(RobotsError):
    """A store that cannot be opened or used.

    A checker raises this only if its `store` argument is not a store or cannot be
    opened. If a store fails later, the checker continues without it.
    """


@set_module("robotsgate")
class TurnDeadlockError(RobotsError, RuntimeError):
    """A task or thread would have waited for its own turn to end.

    For example, it requests a second page from a host before it has released the
    response to the first one.
    """


@set_module("robotsgate")
class TurnNotInTimeError(RobotsError):
    """The wait for a host's next turn would exceed the caller's patience.

    Attributes:
        ready_at: the earliest time of the next turn, in epoch seconds.
    """

    def __init__(self, message: str, *, ready_at: float) -> None:
        super().__init__(message)
        self.ready_at: float = ready_at


@set_module("robotsgate")
class RetriesExhaustedError(RobotsError):
    """A URL in a schedule still failed after its last retry.

    A schedule never raises this error; it reports the error in a `URLSkipped` event.

    Attributes:
        cause: the cause of the last failure, as in `HostBlocked`: the status, such as
            "429"; the class name of an exception; or "failure".
    """

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause: str = cause


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Say how to install `extra` if an import here fails."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"the extra {extra!r} is not installed: in a checkout of robotsgate, run"
            f" pip install '.[{extra}]'"
        ) from error
