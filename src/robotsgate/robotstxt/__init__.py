r"""Parses a robots.txt and matches URLs against it (RFC 9309 §2.2).

Pure: no network, no disk, no clock. Can be used on its own:

>>> from robotsgate.robotstxt import RobotsTxt
>>> robots = RobotsTxt.parse("User-agent: *\nDisallow: /private")
>>> robots.can_fetch("ExampleBot", "https://example.com/private/page")
False
"""

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
