"""Fetches, keeps and obeys robots.txt for asynchronous crawlers.

Everything a user needs is here; modules with a leading underscore are private.
`SQLiteStore` and `RedisStore`, which needs the extra `redis`, are imported when they
are first asked for.
"""

import importlib
from typing import TYPE_CHECKING

from robotsgate._checker import RobotsChecker
from robotsgate._clock import Clock, SystemClock
from robotsgate._events import (
    AccessChanged,
    CheckerEvent,
    RobotsTxtFetched,
    StoreFailed,
)
from robotsgate._stats import CheckerStats
from robotsgate._version import __version__
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AddressGuard, AfterStaleWindow, Policy
from robotsgate.errors import (
    DisallowedError,
    InvalidProductTokenError,
    InvalidURLError,
    RobotsError,
    StoreError,
    UnsupportedError,
)
from robotsgate.robotstxt._access import AccessResult
from robotsgate.robotstxt._dialect import Dialect
from robotsgate.robotstxt._model import (
    Diagnostic,
    DiagnosticKind,
    Group,
    Match,
    OtherLine,
    RequestRate,
    Rule,
    RuleKind,
)
from robotsgate.robotstxt._origin import Origin
from robotsgate.robotstxt._robots_txt import RobotsTxt
from robotsgate.robotstxt._verdict import Reason, Verdict
from robotsgate.stores._base import FetchLease, Store
from robotsgate.stores.memory import MemoryStore

if TYPE_CHECKING:
    from robotsgate.stores.redis import RedisStore as RedisStore
    from robotsgate.stores.sqlite import SQLiteStore

__all__ = [
    "AccessChanged",
    "AccessResult",
    "AddressGuard",
    "AfterStaleWindow",
    "CheckerEvent",
    "CheckerStats",
    "Clock",
    "Copy",
    "Diagnostic",
    "DiagnosticKind",
    "Dialect",
    "DisallowedError",
    "Entry",
    "FailureKind",
    "FetchLease",
    "Group",
    "InvalidProductTokenError",
    "InvalidURLError",
    "Match",
    "MemoryStore",
    "Origin",
    "OtherLine",
    "Policy",
    "Reason",
    "RequestRate",
    "RobotsChecker",
    "RobotsError",
    "RobotsTxt",
    "RobotsTxtFetched",
    "Rule",
    "RuleKind",
    "SQLiteStore",
    "Store",
    "StoreError",
    "StoreFailed",
    "SystemClock",
    "UnsupportedError",
    "Verdict",
    "__version__",
]

_LATER = {
    "RedisStore": "robotsgate.stores.redis",
    "SQLiteStore": "robotsgate.stores.sqlite",
}


def __getattr__(name: str) -> object:
    """What is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_LATER[name])
    except ModuleNotFoundError as error:
        message = f"{name} needs the extra redis: pip install 'robotsgate[redis]'"
        raise ImportError(message) from error
    value: object = getattr(module, name)
    return value
