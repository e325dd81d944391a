"""What Google's own parser and matcher make of a robots.txt, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jwm.robotstxt import googlebot  # type: ignore[import-untyped]  # C++ inside

_READ_BY_US_ONLY = {"crawl-delay", "request-rate"}
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_OUTSIDE_ASCII = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True, slots=True)
class GoogleGroup:
    """The first line of a group, its tokens, and rules as (line, allows, pattern)."""

    line: int
    tokens: list[str] = field(default_factory=list)
    rules: list[tuple[int, bool, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GoogleFile:
    """What Google's parser reports; other lines are (line, field, value)."""

    groups: list[GoogleGroup] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    others: list[tuple[int, str, str]] = field(default_factory=list)


def google_answer(body: bytes, agent: str, url: str) -> tuple[bool, int]:
    """Whether Google's matcher allows, and the line that decides; 0 for none."""
    matcher = googlebot.RobotsMatcher()
    is_allowed = matcher.OneAgentAllowedByRobots(
        body,
        agent.encode("utf-8", "surrogatepass"),
        url.encode("utf-8", "surrogatepass"),
    )
    return is_allowed, matcher.matching_line()


def google_file(body: bytes) -> GoogleFile | None:
    """`body` as Google's parser reads it; `None` where its wheel cannot tell.

    It hands out text, and cannot where a field or a value is not in UTF-8.
    """
    listener = _Listener()
    try:
        body.decode("utf-8")  # the wheel leaks four kilobytes where it raises itself
        googlebot.ParseRobotsTxt(body, listener)
    except UnicodeDecodeError:
        return None
    return listener.file


def google_spelling(pattern: str) -> str:
    """`pattern` as Google's parser hands it to its matcher."""
    upper = _ESCAPE.sub(lambda escape: escape[0].upper(), pattern.encode())
    return _OUTSIDE_ASCII.sub(lambda octet: b"%%%02X" % octet[0][0], upper).decode()


class _Listener(googlebot.RobotsParseHandler):  # type: ignore[misc]  # untyped
    """Collects; the names of its methods are Google's."""

    def __init__(self) -> None:
        super().__init__()
        self.file = GoogleFile()

    def HandleRobotsStart(self) -> None:  # noqa: N802
        pass

    def HandleRobotsEnd(self) -> None:  # noqa: N802
        pass

    def HandleUserAgent(self, line: int, value: str) -> None:  # noqa: N802
        groups = self.file.groups
        if not groups or groups[-1].rules:
            groups.append(GoogleGroup(line))
        is_any = value[:1] == "*" and value[1:2] in {"", *" \t\n\v\f\r"}
        token = googlebot.RobotsMatcher.ExtractUserAgent(value)
        groups[-1].tokens.append("*" if is_any else token.lower())

    def HandleAllow(self, line: int, value: str) -> None:  # noqa: N802
        self._add_rule(line, value, is_allow=True)

    def HandleDisallow(self, line: int, value: str) -> None:  # noqa: N802
        self._add_rule(line, value, is_allow=False)

    def HandleSitemap(self, line: int, value: str) -> None:  # noqa: ARG002, N802
        self.file.sitemaps.append(value)

    def HandleUnknownAction(self, line: int, action: str, value: str) -> None:  # noqa: N802
        key = action.encode().lower().decode()
        if key not in _READ_BY_US_ONLY:
            self.file.others.append((line, key, value))

    def ReportLineMetadata(self, line: int, metadata: object) -> None:  # noqa: N802
        pass

    def _add_rule(self, line: int, value: str, *, is_allow: bool) -> None:
        if self.file.groups:
            self.file.groups[-1].rules.append((line, is_allow, value))
