"""An async robots.txt client for crawlers.

Most of what a user needs is here; events and counters are in `robotsgate.events`.
Modules with a leading underscore are private.
Each name is imported on first use, so `robotsgate.robotstxt` loads neither an event
loop nor a network library, and a program needs only the extras it uses.
"""

from typing import TYPE_CHECKING

# Each public name is listed twice: here for type checkers, which follow only imports
# and treat a name as public if it is imported as itself, and below for the interpreter.
if TYPE_CHECKING:
    from robotsgate._clock import Clock as Clock
    from robotsgate._clock import SystemClock as SystemClock
    from robotsgate._version import __version__ as __version__
    from robotsgate.archive._archive import ArchivedResponse as ArchivedResponse
    from robotsgate.archive._archive import RobotsArchive as RobotsArchive
    from robotsgate.caching._outcome import FailureKind as FailureKind
    from robotsgate.caching._policy import AccessResult as AccessResult
    from robotsgate.caching._policy import AddressGuard as AddressGuard
    from robotsgate.caching._policy import (
        AfterUnreachableLimit as AfterUnreachableLimit,
    )
    from robotsgate.caching._policy import Policy as Policy
    from robotsgate.caching._verdict import DisallowedError as DisallowedError
    from robotsgate.caching._verdict import Reason as Reason
    from robotsgate.caching._verdict import Verdict as Verdict
    from robotsgate.checking._checker import RobotsChecker as RobotsChecker
    from robotsgate.checking._lookups import CheckResult as CheckResult
    from robotsgate.errors import InvalidProductTokenError as InvalidProductTokenError
    from robotsgate.errors import InvalidURLError as InvalidURLError
    from robotsgate.errors import RetriesExhaustedError as RetriesExhaustedError
    from robotsgate.errors import RobotsError as RobotsError
    from robotsgate.errors import StoreError as StoreError
    from robotsgate.errors import TurnDeadlockError as TurnDeadlockError
    from robotsgate.errors import TurnNotInTimeError as TurnNotInTimeError
    from robotsgate.errors import UnsupportedError as UnsupportedError
    from robotsgate.fetching._fetcher import FetchedResponse as FetchedResponse
    from robotsgate.fetching._fetcher import Fetcher as Fetcher
    from robotsgate.fetching._fetcher import FetchFailedError as FetchFailedError
    from robotsgate.fetching._httpx import AsyncClientLike as AsyncClientLike
    from robotsgate.fetching._httpx import AsyncTransportLike as AsyncTransportLike
    from robotsgate.politeness._gate import PolitenessGate as PolitenessGate
    from robotsgate.politeness._shared_ledger import SharedLedger as SharedLedger
    from robotsgate.politeness._turns import Turn as Turn
    from robotsgate.robotstxt._dialect import Dialect as Dialect
    from robotsgate.robotstxt._headers import HeadersLike as HeadersLike
    from robotsgate.robotstxt._lint import Diagnostic as Diagnostic
    from robotsgate.robotstxt._lint import DiagnosticKind as DiagnosticKind
    from robotsgate.robotstxt._lint import Severity as Severity
    from robotsgate.robotstxt._model import Group as Group
    from robotsgate.robotstxt._model import Line as Line
    from robotsgate.robotstxt._model import Match as Match
    from robotsgate.robotstxt._model import Rule as Rule
    from robotsgate.robotstxt._robots_txt import RobotsTxt as RobotsTxt
    from robotsgate.robotstxt._usage_preferences import (
        UsagePreferences as UsagePreferences,
    )
    from robotsgate.stores._base import Store as Store
    from robotsgate.stores._url import open_store as open_store
    from robotsgate.stores.memory import MemoryStore as MemoryStore
    from robotsgate.stores.redis import RedisStore as RedisStore
    from robotsgate.stores.sqlite import SQLiteStore as SQLiteStore
    from robotsgate.urls._url import Origin as Origin
    from robotsgate.urls._url import URLLike as URLLike

_NAMES = {
    "_clock": "Clock SystemClock",
    "_version": "__version__",
    "archive._archive": "ArchivedResponse RobotsArchive",
    "caching._outcome": "FailureKind",
    "caching._policy": "AccessResult AddressGuard AfterUnreachableLimit Policy",
    "caching._verdict": "DisallowedError Reason Verdict",
    "checking._checker": "RobotsChecker",
    "checking._lookups": "CheckResult",
    "errors": (
        "InvalidProductTokenError InvalidURLError RetriesExhaustedError"
        " RobotsError StoreError TurnDeadlockError TurnNotInTimeError"
        " UnsupportedError"
    ),
    "fetching._fetcher": "FetchFailedError FetchedResponse Fetcher",
    "fetching._httpx": "AsyncClientLike AsyncTransportLike",
    "politeness._gate": "PolitenessGate",
    "politeness._shared_ledger": "SharedLedger",
    "politeness._turns": "Turn",
    "robotstxt._dialect": "Dialect",
    "robotstxt._headers": "HeadersLike",
    "robotstxt._lint": "Diagnostic DiagnosticKind Severity",
    "robotstxt._model": "Group Line Match Rule",
    "robotstxt._robots_txt": "RobotsTxt",
    "robotstxt._usage_preferences": "UsagePreferences",
    "stores._base": "Store",
    "stores._url": "open_store",
    "stores.memory": "MemoryStore",
    "stores.sqlite": "SQLiteStore",
    "urls._url": "Origin URLLike",
}
# Names that need the redis extra are not in `__all__`, so that `import *` works without
# it.
_EXTRA_HOMES = {
    "RedisStore": "stores.redis",
}

if not TYPE_CHECKING:  # pragma: no branch (a type checker would accept any name)
    _HOMES = dict(
        sorted((name, home) for home, names in _NAMES.items() for name in names.split())
    )
    __all__ = list(_HOMES)

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name) or _EXTRA_HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib  # noqa: PLC0415

        module = importlib.import_module(f"{__name__}.{home}")
        value = globals()[name] = getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return __all__
