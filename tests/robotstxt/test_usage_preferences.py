"""How a site wants its content to be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate.robotstxt import (
    CategoryPreference,
    DiagnosticKind,
    Preference,
    RobotsTxt,
)
from robotsgate.robotstxt._dialect import RFC9309
from robotsgate.robotstxt._headers import header_values
from robotsgate.robotstxt._parser import USAGE_FIELDS
from robotsgate.robotstxt._usage_preferences import usage_preferences
from tests.tables import cases

if TYPE_CHECKING:
    from robotsgate.robotstxt._headers import HeadersLike

ALLOW, DISALLOW, UNKNOWN = Preference.ALLOW, Preference.DISALLOW, Preference.UNKNOWN

# Adapted from the example in draft-ietf-aipref-attach-05 §3.4.
_TWO_GROUPS = """User-Agent: *
Disallow: /secret/
Content-Usage: train-ai=n
Content-Usage: /open/ train-ai=y

User-Agent: ExampleBot
Content-Usage: train-ai=y, search=n
"""


def usage(body: str | bytes, path: str = "/a", agent: str = "bot") -> dict[str, Any]:
    """The preference and line of each Content-Usage category."""
    preferences = RobotsTxt.parse(body).usage_preferences(agent, path)
    return {
        category: (each.preference, each.line)
        for category, each in preferences.content_usage.items()
    }


def train_ai(*rules: str, path: str = "/a") -> tuple[Preference, int | None]:
    """The train-ai preference in a group with `rules`, the first of which is line 2."""
    lines = "".join(f"Content-Usage: {rule}\n" for rule in rules)
    stated: tuple[Preference, int | None]
    stated = usage(f"User-agent: *\n{lines}", path)["train-ai"]
    return stated


@cases("agent path train_ai search", {
    "no path": ("other", "/x", (DISALLOW, 3), (UNKNOWN, None)),
    "a longer path": ("other", "/open/x", (ALLOW, 4), (UNKNOWN, None)),
    "disallowed": ("other", "/secret/x", (UNKNOWN, None), (UNKNOWN, None)),
    "its own group": ("ExampleBot", "/secret/x", (ALLOW, 7), (DISALLOW, 7)),
    "the file itself": ("other", "/robots.txt", (DISALLOW, 3), (UNKNOWN, None)),
})  # fmt: skip
def test_agents_group_applies_to_the_paths_that_it_may_fetch(
    agent: str, path: str, train_ai: object, search: object
) -> None:
    """draft-ietf-aipref-attach-05 §3.1."""
    assert usage(_TWO_GROUPS, path, agent) == {"train-ai": train_ai, "search": search}


@cases("path rules preference", {
    "the longest": ("/a/b", ["/a/ train-ai=y", "/ train-ai=n"], (ALLOW, 2)),
    "any path beats none": ("/a", ["train-ai=n", "/ train-ai=y"], (ALLOW, 3)),
    "no match": ("/b", ["/a train-ai=n"], (UNKNOWN, None)),
    "equal": ("/a", ["/a train-ai=y", "/a train-ai=n"], (DISALLOW, 3)),
    "no path, twice": ("/a", ["train-ai=n", "train-ai=y"], (DISALLOW, 2)),
    "the strictest of all readings":
        ("/a/../b", ["/b train-ai=n", "/a train-ai=y"], (DISALLOW, 2)),
    "a lone percent sign has two readings":
        ("/9%", ["/9%25 train-ai=n", "/9% train-ai=y"], (DISALLOW, 2)),
    "equal when encoded": ("/a", ["/a train-ai=y", "/%61 train-ai=n"], (DISALLOW, 3)),
    "equally long": ("/ab", ["/*b train-ai=y", "/a* train-ai=n"], (DISALLOW, 3)),
    "length after encoding": ("/é", ["/é train-ai=y", "/** train-ai=n"], (ALLOW, 2)),
    "not UTF-8": ("/%FF", ["/%ff train-ai=n"], (DISALLOW, 2)),
    "a wildcard": ("/x.pdf", ["/*.pdf train-ai=n"], (DISALLOW, 2)),
    "an end": ("/ab", ["/a$ train-ai=n"], (UNKNOWN, None)),
    "a tab after the path": ("/a", ["/a\ttrain-ai=n"], (DISALLOW, 2)),
    "nothing after the path": ("/a", ["/a", "train-ai=n"], (UNKNOWN, None)),
    "no slash": ("/a", ["*a train-ai=n"], (UNKNOWN, None)),
    "a space in a key": ("/a", ["/a train -ai=n"], (UNKNOWN, None)),
    "rubbish for a longer path": ("/a", ["/a !", "/ train-ai=n"], (UNKNOWN, None)),
    "rubbish for an equal path": ("/a", ["/a !", "/a train-ai=n"], (DISALLOW, 3)),
})  # fmt: skip
def test_longest_path_wins_and_then_the_most_restrictive_rule(
    path: str, rules: list[str], preference: object
) -> None:
    """draft-ietf-aipref-attach-05 §3.1 and §3.2."""
    assert train_ai(*rules, path=path) == preference


def test_path_that_is_not_utf8_is_compared_by_its_bytes() -> None:
    body = b"User-agent: *\nContent-Usage: /\xff train-ai=n"

    assert usage(body, "/%FF")["train-ai"] == (DISALLOW, 2)


@cases("dictionary preference", {
    "yes": ("train-ai=y", ALLOW),
    "no": ("train-ai=n", DISALLOW),
    "the last of a key": ("train-ai=n, train-ai=y", ALLOW),
    "the last of a key, unknown": ("train-ai=n, train-ai", UNKNOWN),
    "parameters": ("train-ai=n;allow=y", DISALLOW),
    "among others": ("foo=1, train-ai=n, search=y", DISALLOW),
    "a string": ('train-ai="n"', UNKNOWN),
    "a boolean": ("train-ai", UNKNOWN),
    "a list": ("train-ai=(n n)", UNKNOWN),
    "another token": ("train-ai=no", UNKNOWN),
    "a capital token": ("train-ai=N", UNKNOWN),
    "a capital key": ("Train-AI=n", UNKNOWN),
    "a capital key elsewhere": ("train-ai=n, Search=y", UNKNOWN),
    "a trailing comma": ("train-ai=n,", UNKNOWN),
    "spaces around the equals sign": ("train-ai = n", UNKNOWN),
    "a comment": ("train-ai=n # y", DISALLOW),
    "not ASCII": ("train-ai=n, é=1", UNKNOWN),
    "empty": ("", UNKNOWN),
})  # fmt: skip
def test_dictionary_states_preferences_as_tokens(
    dictionary: str, preference: object
) -> None:
    """draft-ietf-aipref-vocab-08, "Processing Algorithm" and "Syntax Extensions"."""
    assert train_ai(dictionary)[0] is preference


@cases("body signals", {
    "as Cloudflare writes it":
        ("User-agent: *\nContent-Signal: search=yes,ai-train=no,use=reference",
         {"search": (ALLOW, 2), "ai-train": (DISALLOW, 2),
          "use": (Preference.REFERENCE, 2)}),
    "spaces, letter case and rubbish":
        ("User-agent: *\ncontent-signal: AI-Input = No , , x=yes, search, use=no",
         {"ai-input": (DISALLOW, 2)}),
    "outside any group":
        ("Content-Signal: search=no\nUser-agent: bot\nAllow: /",
         {"search": (DISALLOW, 1)}),
    "without any group": ("Content-Signal: search=no", {"search": (DISALLOW, 1)}),
    "outside and in the group":
        ("Content-Signal: search=no\nUser-agent: bot\nContent-Signal: search=yes",
         {"search": (DISALLOW, 1)}),
    "in another group":
        ("User-agent: bot\nAllow: /\nUser-agent: *\nContent-Signal: search=no", {}),
    "above its user-agent line":
        ("User-agent: x\nContent-Signal: search=no\nUser-agent: bot\nAllow: /", {}),
    "repeated on one line":
        ("User-agent: *\nContent-Signal: search=no, search=yes",
         {"search": (DISALLOW, 2)}),
    "the most restrictive use":
        ("User-agent: *\nContent-Signal: use=full\nContent-Signal: use=immediate",
         {"use": (Preference.IMMEDIATE, 3)}),
    "disallowed": ("User-agent: *\nContent-Signal: search=no\nDisallow: /", {}),
})  # fmt: skip
def test_most_restrictive_content_signal_of_group_and_file_wins(
    body: str, signals: dict[str, tuple[Preference, int]]
) -> None:
    preferences = RobotsTxt.parse(body).usage_preferences("bot", "/a")

    stated = {
        category: (each.preference, each.line)
        for category, each in preferences.content_signal.items()
        if each.preference is not UNKNOWN
    }
    assert stated == signals


@cases("body urls", {
    "from the file": ("License: https://e.com/l.xml\nUser-agent: bot", ["https://e.com/l.xml"]),
    "from the group": ("User-agent: bot\nLICENSE: https://e.com/l", ["https://e.com/l"]),
    "from the fallback group": ("User-agent: *\nLicense: https://e.com/l", ["https://e.com/l"]),
    "in another group":
        ("User-agent: bot\nAllow:\nUser-agent: x\nLicense: https://h/l", []),
    "from the group instead of the file":
        ("License: http://h/0\nUser-agent: bot\nLicense: http://h/1\nLicense: http://h/2",
         ["http://h/1", "http://h/2"]),
    "from the fallback group instead of the file":
        ("License: http://h/0\nUser-agent: *\nLicense: http://h/1", ["http://h/1"]),
    "from the file, since only another group has its own":
        ("License: http://h/0\nUser-agent: x\nLicense: http://h/1\nUser-agent: bot",
         ["http://h/0"]),
    "from the file, since the group's is relative":
        ("License: http://h/0\nUser-agent: bot\nLicense: /1", ["http://h/0"]),
    "each listed once, in order":
        ("License: http://h/2\nLicense: http://h/1\nLicense: http://h/2",
         ["http://h/2", "http://h/1"]),
    "relative": ("License: /l.xml\nLicense:", []),
    "disallowed": ("License: http://h/é\nUser-agent: *\nDisallow: /", ["http://h/é"]),
})  # fmt: skip
def test_licenses_are_the_absolute_urls_of_the_group_or_the_file(
    body: str, urls: list[str]
) -> None:
    """RSL 1.0 (2025-12-10) §4.4; a license also tells how to get permission."""
    assert list(RobotsTxt.parse(body).usage_preferences("bot", "/a").license) == urls


def test_usage_preferences_as_json_list_every_category() -> None:
    body = "User-agent: *\nContent-Usage: search=y\nContent-Signal: ai-train=no\n"
    unknown = {"preference": "unknown", "line": None}

    as_dict = RobotsTxt.parse(body).usage_preferences("bot", "/a").as_dict()

    assert json.loads(json.dumps(as_dict)) == {
        "content-usage": {
            "train-ai": unknown,
            "search": {"preference": "allow", "line": 2},
        },
        "content-signal": {
            "search": unknown,
            "ai-input": unknown,
            "ai-train": {"preference": "disallow", "line": 3},
            "use": unknown,
        },
        "license": [],
    }


def test_content_usage_outside_any_group_applies_to_no_agent() -> None:
    assert usage("Content-Usage: train-ai=n")["train-ai"] == (UNKNOWN, None)


def test_usage_fields_are_not_reported_as_unknown() -> None:
    body = "User-agent: *\n" + "".join(f"{field}: x\n" for field in USAGE_FIELDS)

    kinds = [each.kind for each in RobotsTxt.parse(body).diagnostics]

    assert DiagnosticKind.UNKNOWN_FIELD not in kinds


@cases("headers rule expected", {
    "header alone": ({"content-usage": "train-ai=n"}, "", (DISALLOW, None)),
    "disallow in the header":
        ({"Content-Usage": "train-ai=n"}, "train-ai=y", (DISALLOW, None)),
    "disallow in the file":
        ({"Content-Usage": "train-ai=y"}, "train-ai=n", (DISALLOW, 2)),
    "both": ({"CONTENT-USAGE": "train-ai=n"}, "train-ai=n", (DISALLOW, 2)),
    "neither disallows": ({"Content-Usage": "train-ai=y"}, "search=n", (ALLOW, None)),
    "a path in the header": ({"Content-Usage": "/ train-ai=n"}, "", (UNKNOWN, None)),
    "several headers are one dictionary":
        ([("Content-Usage", "train-ai=n"), ("Content-Usage", "train-ai=y")], "",
         (ALLOW, None)),
    "another header": ([("Content-Type", "train-ai=n")], "", (UNKNOWN, None)),
    "no headers": (None, "train-ai=n", (DISALLOW, 2)),
    "a lone surrogate": ({"Content-Usage": "train-ai=n\ud800"}, "", (UNKNOWN, None)),
})  # fmt: skip
def test_content_usage_header_is_combined_with_the_file(
    headers: HeadersLike | None, rule: str, expected: object
) -> None:
    """draft-ietf-aipref-attach-05 §2; vocab-08, "Combining Preferences"."""
    preferences = usage_preferences(
        [("content-usage", rule, 2)], ["/a"], RFC9309, allowed=True, headers=headers
    )

    stated = preferences.content_usage["train-ai"]
    assert (stated.preference, stated.line) == expected


@cases("headers line expected", {
    "header alone": ({"content-signal": "ai-train=no"}, "", (DISALLOW, None)),
    "yes in the file": ({"Content-Signal": "AI-Train = No"}, "ai-train=yes",
        (DISALLOW, None)),
    "no in the file": ({"Content-Signal": "ai-train=yes"}, "ai-train=no",
        (DISALLOW, 2)),
    "the most restrictive of several headers":
        ([("Content-Signal", "ai-train=no"), ("Content-Signal", "ai-train=yes")], "",
        (DISALLOW, None)),
    "an iterator of headers":
        (iter([("Content-Signal", "ai-train=no")]), "", (DISALLOW, None)),
})  # fmt: skip
def test_content_signal_header_is_combined_with_the_file(
    headers: HeadersLike, line: str, expected: object
) -> None:
    """Cloudflare's Markdown for Agents sends this header."""
    preferences = usage_preferences(
        [("content-signal", line, 2)], "/a", RFC9309, allowed=True, headers=headers
    )

    stated = preferences.content_signal["ai-train"]
    assert (stated.preference, stated.line) == expected


def test_headers_of_a_disallowed_page_are_ignored() -> None:
    headers = {"Content-Usage": "train-ai=n", "Content-Signal": "ai-train=no"}

    preferences = usage_preferences([], ["/a"], RFC9309, allowed=False, headers=headers)

    unknown = CategoryPreference(preference=UNKNOWN)
    assert preferences.content_usage["train-ai"] == unknown
    assert preferences.content_signal["ai-train"] == unknown


@pytest.mark.parametrize("headers", ["Content-Usage: x", [("a",)], {"a": b"b"}, [1]])
def test_headers_that_are_not_pairs_of_text_raise(headers: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="expected headers to be a mapping or pairs"):
        header_values(headers, "content-usage")


@cases("head urls", {
    "in a comment": ("# our license: https://a.example/l\n", ()),
    "after a value with the word":
        ("Sitemap: https://a.example/license\nLicense: https://a.example/l\n",
         ("https://a.example/l",)),
    "indented, after a comment with the word":
        ("# license\r \tLICENSE: https://a.example/l\r", ("https://a.example/l",)),
    "deeply indented":
        (f"{' ' * 200}License: https://a.example/l\n", ("https://a.example/l",)),
})  # fmt: skip
def test_only_license_lines_not_comments_count_above_the_first_group(
    head: str, urls: tuple[str, ...]
) -> None:
    robots_txt = RobotsTxt.parse(f"{head}User-agent: *\nDisallow:\n")

    assert robots_txt.usage_preferences("ExampleBot", "/").license == urls
