"""How Google's own parser and matcher read a robots.txt, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jwm.robotstxt import googlebot  # type: ignore[import-untyped]  # C++ inside

_IGNORED_BY_GOOGLE = {"crawl-delay", "request-rate"}
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_OUTSIDE_ASCII = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True, slots=True)
class GoogleGroup:
    """A group's first line, its tokens, and its rules as (line, is_allow, pattern)."""

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
    """Whether Google's matcher allows the URL, and the decisive line, or 0."""
    matcher = googlebot.RobotsMatcher()
    is_allowed = matcher.OneAgentAllowedByRobots(
        body,
        agent.encode("utf-8", "surrogatepass"),
        url.encode("utf-8", "surrogatepass"),
    )
    return is_allowed, matcher.matching_line()


def google_file(body: bytes) -> GoogleFile | None:
    """`body` as Google's parser reads it; `None` if it is not UTF-8.

    The wheel's callbacks take text, so it fails if a field or a value is not UTF-8.
    """
    listener = _Listener()
    try:
        body.decode("utf-8")  # the wheel itself would leak 4 kB
        googlebot.ParseRobotsTxt(body, listener)
    except UnicodeDecodeError:
        return None
    return listener.file


def google_spelling(pattern: str) -> str:
    """`pattern` as Google's parser passes it to its matcher."""
    upper = _ESCAPE.sub(lambda escape: escape[0].upper(), pattern.encode())
    return _OUTSIDE_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], upper).decode()


class _Listener(googlebot.RobotsParseHandler):  # type: ignore[misc]  # untyped
    """Collects what the parser reports; Google chose the method names."""

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
        if key not in _IGNORED_BY_GOOGLE:
            self.file.others.append((line, key, value))

    def ReportLineMetadata(self, line: int, metadata: object) -> None:  # noqa: N802
        pass

    def _add_rule(self, line: int, value: str, *, is_allow: bool) -> None:
        if self.file.groups:
            self.file.groups[-1].rules.append((line, is_allow, value))
