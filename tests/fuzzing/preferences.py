"""Fuzzes usage preferences from a robots.txt and a header."""

from __future__ import annotations

import json
from functools import partial

from robotsgate.robotstxt import Dialect, Preference, RobotsTxt, UsagePreferences
from robotsgate.robotstxt._dialect import GOOGLE, RFC9309
from robotsgate.robotstxt._usage_preferences import usage_preferences
from tests.fuzzing.target import Target, as_header, as_text, fields, in_time, joined

_GRAMMARS = {Dialect.RFC9309: RFC9309, Dialect.GOOGLE: GOOGLE}
_RESTRICTIVENESS = {one: rank for rank, one in enumerate(Preference)}


def check(data: bytes) -> None:
    """Read a file and a header for one path."""
    path, header, body = fields(data, 3)
    for dialect, grammar in _GRAMMARS.items():
        robots = RobotsTxt.parse(body, dialect=dialect, max_bytes=None)
        target = f"/{as_text(path)}"
        stated = in_time(
            "reading preferences", partial(robots.usage_preferences, "bot", target)
        )
        _check_lines(stated, robots)
        both = usage_preferences(
            robots.rules_for("bot").usage_lines,
            grammar.readings(target),
            grammar,
            allowed=robots.can_fetch("bot", target),
            headers=[("Content-Usage", as_header(header))],
        )
        assert both.content_signal == stated.content_signal
        for category, preference in stated.content_usage.items():
            assert (
                _RESTRICTIVENESS[both.content_usage[category].preference]
                <= _RESTRICTIVENESS[preference.preference]
            )


def _check_lines(stated: UsagePreferences, robots: RobotsTxt) -> None:
    """Check that each preference is on a line of its vocabulary."""
    assert json.dumps(stated.as_dict())
    fields_of_lines = {one.line: one.field for one in robots.other_lines}
    for vocabulary, field in (
        (stated.content_usage, "content-usage"),
        (stated.content_signal, "content-signal"),
    ):
        for category, one in vocabulary.items():
            if one.line is None:
                assert one.preference is Preference.UNKNOWN
            else:
                assert fields_of_lines[one.line] == field
                assert category in robots.lines[one.line - 1].text.lower()
    for url in stated.license:
        assert url in {one.value for one in robots.other_lines}


TARGET = Target(
    check=check,
    seeds=(
        joined(b"a", b"train-ai=n", b"User-agent: *\nContent-Usage: /a train-ai=y"),
        joined(b"", b"", b"Content-Signal: search=yes,use=full\nLicense: http://h/l\n"),
        joined(b"a", b"search=y;q=1", b"User-agent: bot\nContent-Usage: search"),
        joined(b"%41", b'a="b"', b"User-agent:bot\nContent-Usage:/%41*$\ttrain-ai=n\n"),
    ),
    words=(
        b"User-agent: bot\n", b"User-agent: *\n", b"Disallow: /", b"Content-Usage: ",
        b"Content-Signal: ", b"License: ", b"train-ai", b"search", b"ai-train",
        b"ai-input", b"use", b"=", b"=y", b"=n", b"=yes", b"=no", b"=full", b", ",
        b";", b"(", b")", b'"', b"?0", b":YQ==:", b"@1", b'%"', b"1.5", b"/", b"*",
        b"$", b"#", b"%2f", b"%", b" ", b"\t", b"\r", b"\n", b"\xc3\xa9", b"\xff",
        b"\0", b"http://h/",
    ),
    max_length=512,
)  # fmt: skip
