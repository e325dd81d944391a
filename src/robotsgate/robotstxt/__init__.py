r"""Parses a robots.txt and matches URLs against it (RFC 9309 §2.2).

Pure: no network, no disk, no clock. Usable alone:

>>> from robotsgate.robotstxt import RobotsTxt
>>> robots = RobotsTxt.parse("User-agent: *\nDisallow: /private")
>>> robots.can_fetch("ExampleBot", "https://example.com/private/page")
False
"""

from robotsgate.robotstxt._dialect import Dialect
from robotsgate.robotstxt._model import (
    Diagnostic,
    DiagnosticKind,
    Group,
    Line,
    LineKind,
    Match,
    OtherLine,
    RequestRate,
    Rule,
    RuleKind,
    Severity,
)
from robotsgate.robotstxt._robots_txt import RobotsTxt

__all__ = [
    "Diagnostic",
    "DiagnosticKind",
    "Dialect",
    "Group",
    "Line",
    "LineKind",
    "Match",
    "OtherLine",
    "RequestRate",
    "RobotsTxt",
    "Rule",
    "RuleKind",
    "Severity",
]
