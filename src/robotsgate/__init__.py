"""Fetches, keeps and obeys robots.txt for asynchronous crawlers.

Everything a user needs is here; modules with a leading underscore are private.
Each name is imported when it is first used. So `robotsgate.robotstxt` loads neither an
event loop nor a network library, and a program needs only the extras that it uses.
"""

from typing import TYPE_CHECKING

from robotsgate._version import __version__

if TYPE_CHECKING:
    from robotsgate._clock import Clock, SystemClock
    from robotsgate._headers import HeadersLike
    from robotsgate.caching._access import AccessResult
    from robotsgate.caching._outcome import FailureKind
    from robotsgate.caching._policy import AddressGuard, AfterUnreachableLimit, Policy
    from robotsgate.caching._verdict import DisallowedError, Reason, Verdict
    from robotsgate.checking._checker import RobotsChecker
    from robotsgate.checking._events import (
        AccessChanged,
        CheckerEvent,
        FetchCancelled,
        FetchStarted,
        RobotsTxtFetched,
        StoreFailed,
    )
    from robotsgate.checking._many import CheckResult, CheckResults
    from robotsgate.checking._stats import CheckerStats
    from robotsgate.errors import (
        InvalidProductTokenError,
        InvalidURLError,
        RobotsError,
        StoreError,
        TurnNotInTimeError,
        UnsupportedError,
    )
    from robotsgate.fetching._fetcher import FetchedResponse, Fetcher, FetchFailedError
    from robotsgate.fetching._httpx import AsyncClientLike, AsyncTransportLike
    from robotsgate.politeness._events import (
        DelayClamped,
        GateEvent,
        LedgerEvent,
        LedgerFailed,
        LedgerReturned,
        RetryAfterIgnored,
        TurnsOverdue,
        URLLeftOut,
    )
    from robotsgate.politeness._gate import PolitenessGate
    from robotsgate.politeness._ledger import (
        Grant,
        Ledger,
        LedgerStatus,
        LocalLedger,
        Wait,
    )
    from robotsgate.politeness._schedule import HostState, Pace, TurnEnd
    from robotsgate.politeness._schedule_of_urls import ScheduledTurn, TurnSchedule
    from robotsgate.politeness._stats import GateStats, HostStatus
    from robotsgate.politeness._turn import Turn
    from robotsgate.politeness.redis_ledger import (
        RedisLedger as RedisLedger,  # needs an extra
    )
    from robotsgate.robotstxt._dialect import Dialect
    from robotsgate.robotstxt._model import (
        CategoryPreference,
        Diagnostic,
        DiagnosticKind,
        Group,
        Line,
        LineKind,
        Match,
        OtherLine,
        Preference,
        RequestRate,
        Rule,
        RuleKind,
        Severity,
        UsagePreferences,
    )
    from robotsgate.robotstxt._robots_txt import RobotsTxt
    from robotsgate.stores._base import FetchLease, ListableStore, Store
    from robotsgate.stores._url import open_store
    from robotsgate.stores.memory import MemoryStore
    from robotsgate.stores.redis import RedisStore as RedisStore  # needs an extra
    from robotsgate.stores.sqlite import SQLiteStore
    from robotsgate.urls._origin import Origin, URLLike

__all__ = [
    "AccessChanged",
    "AccessResult",
    "AddressGuard",
    "AfterUnreachableLimit",
    "AsyncClientLike",
    "AsyncTransportLike",
    "CategoryPreference",
    "CheckResult",
    "CheckResults",
    "CheckerEvent",
    "CheckerStats",
    "Clock",
    "DelayClamped",
    "Diagnostic",
    "DiagnosticKind",
    "Dialect",
    "DisallowedError",
    "FailureKind",
    "FetchCancelled",
    "FetchFailedError",
    "FetchLease",
    "FetchStarted",
    "FetchedResponse",
    "Fetcher",
    "GateEvent",
    "GateStats",
    "Grant",
    "Group",
    "HeadersLike",
    "HostState",
    "HostStatus",
    "InvalidProductTokenError",
    "InvalidURLError",
    "Ledger",
    "LedgerEvent",
    "LedgerFailed",
    "LedgerReturned",
    "LedgerStatus",
    "Line",
    "LineKind",
    "ListableStore",
    "LocalLedger",
    "Match",
    "MemoryStore",
    "Origin",
    "OtherLine",
    "Pace",
    "Policy",
    "PolitenessGate",
    "Preference",
    "Reason",
    "RequestRate",
    "RetryAfterIgnored",
    "RobotsChecker",
    "RobotsError",
    "RobotsTxt",
    "RobotsTxtFetched",
    "Rule",
    "RuleKind",
    "SQLiteStore",
    "ScheduledTurn",
    "Severity",
    "Store",
    "StoreError",
    "StoreFailed",
    "SystemClock",
    "Turn",
    "TurnEnd",
    "TurnNotInTimeError",
    "TurnSchedule",
    "TurnsOverdue",
    "URLLeftOut",
    "URLLike",
    "UnsupportedError",
    "UsagePreferences",
    "Verdict",
    "Wait",
    "__version__",
    "open_store",
]

_NAMES = {
    "_clock": "Clock SystemClock",
    "_headers": "HeadersLike",
    "caching._access": "AccessResult",
    "caching._outcome": "FailureKind",
    "caching._policy": "AddressGuard AfterUnreachableLimit Policy",
    "caching._verdict": "DisallowedError Reason Verdict",
    "checking._checker": "RobotsChecker",
    "checking._events": (
        "AccessChanged CheckerEvent FetchCancelled FetchStarted RobotsTxtFetched"
        " StoreFailed"
    ),
    "checking._many": "CheckResult CheckResults",
    "checking._stats": "CheckerStats",
    "errors": (
        "InvalidProductTokenError InvalidURLError RobotsError StoreError"
        " TurnNotInTimeError UnsupportedError"
    ),
    "fetching._fetcher": "FetchFailedError FetchedResponse Fetcher",
    "fetching._httpx": "AsyncClientLike AsyncTransportLike",
    "politeness._events": (
        "DelayClamped GateEvent LedgerEvent LedgerFailed LedgerReturned"
        " RetryAfterIgnored TurnsOverdue URLLeftOut"
    ),
    "politeness._gate": "PolitenessGate",
    "politeness._ledger": "Grant Ledger LedgerStatus LocalLedger Wait",
    "politeness._schedule": "HostState Pace TurnEnd",
    "politeness._schedule_of_urls": "ScheduledTurn TurnSchedule",
    "politeness._stats": "GateStats HostStatus",
    "politeness._turn": "Turn",
    "politeness.redis_ledger": "RedisLedger",
    "robotstxt._dialect": "Dialect",
    "robotstxt._model": (
        "CategoryPreference Diagnostic DiagnosticKind Group Line LineKind Match"
        " OtherLine Preference RequestRate Rule RuleKind Severity UsagePreferences"
    ),
    "robotstxt._robots_txt": "RobotsTxt",
    "stores._base": "FetchLease ListableStore Store",
    "stores._url": "open_store",
    "stores.memory": "MemoryStore",
    "stores.redis": "RedisStore",
    "stores.sqlite": "SQLiteStore",
    "urls._origin": "Origin URLLike",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # pragma: no branch (a type checker would take any name)

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib  # noqa: PLC0415

        try:
            home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        except ModuleNotFoundError as error:
            if name not in {"RedisLedger", "RedisStore"}:
                raise
            message = f"{name} needs the extra redis: pip install 'robotsgate[redis]'"
            raise ImportError(message) from error
        value = globals()[name] = getattr(home, name)
        return value

    def __dir__() -> list[str]:
        return __all__
