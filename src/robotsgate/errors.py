"""The exceptions that robotsgate raises.

RobotsError
├── InvalidURLError           (also a ValueError)
├── InvalidProductTokenError  (also a ValueError)
├── UnsupportedError
├── StoreError
├── FetchFailedError          (fetching/_fetcher.py: a Fetcher raises it)
├── DisallowedError           (caching/_verdict.py: it carries a Verdict)
└── TurnNotInTimeError

A dead host, a broken robots.txt or a refused connection leads to a `Verdict`, not to
an exception.
This module imports nothing of robotsgate, so two of them stand beside their evidence.
"""

from __future__ import annotations

from functools import partial

__all__ = [
    "InvalidProductTokenError",
    "InvalidURLError",
    "RobotsError",
    "StoreError",
    "TurnNotInTimeError",
    "UnsupportedError",
]


class RobotsError(Exception):
    """The base of every exception that robotsgate raises."""


class InvalidURLError(RobotsError, ValueError):
    """A URL without an origin: it is relative, malformed, or of another scheme.

    Attributes:
        url: what the caller gave, unchanged; it may hold a password, which the
            message does not show.
    """

    def __init__(self, message: str, *, url: object) -> None:
        super().__init__(message)
        self.url = url

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), url=self.url), self.args


class InvalidProductTokenError(RobotsError, ValueError):
    """An agent in which no product token can be found (RFC 9309 §2.2.1).

    Attributes:
        agent: what the caller gave, unchanged; it may hold a password, which the
            message does not show.
    """

    def __init__(self, message: str, *, agent: object) -> None:
        super().__init__(message)
        self.agent = agent

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), agent=self.agent), self.args


class UnsupportedError(RobotsError):
    """Something that robotsgate cannot do, such as FTP through a caller's client."""


class StoreError(RobotsError):
    """A store that cannot be opened or used.

    A checker raises this only if its argument `store` is not a store or cannot be
    opened. If a store fails later, the checker goes on without the store.
    """


class TurnNotInTimeError(RobotsError):
    """The turn of a host does not come within the patience of the caller.

    Attributes:
        ready_at: the earliest time of the turn, epoch seconds.
    """

    def __init__(self, message: str, *, ready_at: float) -> None:
        super().__init__(message)
        self.ready_at = ready_at

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), ready_at=self.ready_at), self.args
