r"""Parses a robots.txt and matches URLs against it (RFC 9309 §2.2).

Pure: no network, no disk, no clock. Can be used on its own:

>>> from robotsgate.robotstxt import RobotsTxt
>>> robots = RobotsTxt.parse("User-agent: *\nDisallow: /private")
>>> robots.can_fetch("ExampleBot", "https://example.com/private/page")
False
"""

from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Dialect
from robotsgate.robotstxt._model import (
    Group,
    Line,
    LineKind,
    Match,
    OtherLine,
    RequestRate,
    Rule,
    RuleKind,
)
from robotsgate.robotstxt._product_token import crawler_or_any as crawler_or_any
from robotsgate.robotstxt._robots_txt import RobotsTxt

if TYPE_CHECKING:
    from robotsgate.robotstxt._lint import Diagnostic, DiagnosticKind, Severity
    from robotsgate.robotstxt._usage_preferences import (
        CategoryPreference,
        Preference,
        UsagePreferences,
    )

__all__ = [
    "CategoryPreference",
    "Diagnostic",
    "DiagnosticKind",
    "Dialect",
    "Group",
    "Line",
    "LineKind",
    "Match",
    "OtherLine",
    "Preference",
    "RequestRate",
    "RobotsTxt",
    "Rule",
    "RuleKind",
    "Severity",
    "UsagePreferences",
]

if not TYPE_CHECKING:  # pragma: no branch (a type checker would take any name)

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from robotsgate.robotstxt import _lint, _usage_preferences  # noqa: PLC0415 (rarely needed)

        return getattr(_lint if hasattr(_lint, name) else _usage_preferences, name)

    def __dir__() -> list[str]:
        return __all__
