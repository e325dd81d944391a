"""The ways in which clients and servers may interpret a path."""

from __future__ import annotations

import pytest

from robotsgate.urls._path import readings, resolved
from tests.tables import cases


@pytest.mark.parametrize(("path", "expected"), [
    ("/a/b", "/a/b"), ("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/a/b/..", "/a/"),
    ("/a/b/.", "/a/b/"), ("/..", "/"), ("/.", "/"), ("/../../a", "/a"),
    ("/a//../b", "/a/b"), ("/...", "/..."), ("/.a/..b", "/.a/..b"), ("//..//", "//"),
    ("/a/%2e%2E/b", "/b"), ("/a/.%2e", "/"), ("/a/%2e", "/a/"),
    ("/a/b/%2e%2e/../c", "/c"), ("/%2ea/%2e.b", "/%2ea/%2e.b"),
])  # fmt: skip
def test_dot_segments_are_removed(path: str, expected: str) -> None:
    """RFC 3986 §5.2.4."""
    assert resolved(path) == expected


@cases("target others", {
    "no dots": ("/a/b?c", set()),
    "dots in names": ("/.a/b../...?/../", set()),
    "empty segments": ("//a///", set()),
    "an escaped dot in a name": ("/a%2Ehtml", set()),
    "an escaped slash": ("/a%2F..%5C..", set()),
    "dots in the query": ("/a?b=/../\\c%2e", set()),
    "a literal dot": ("/a/./b", {"/a/b"}),
    "at the end": ("/a/..?q", {"/?q"}),
    "escaped": ("/a/%2e%2E/b", {"/b"}),
    "half escaped": ("/a/.%2e/b", {"/b"}),
    "literal and escaped": ("/a/../b/%2e%2e/c?d", {"/b/%2e%2e/c?d", "/c?d"}),
    "a literal one removes an escaped one":
        ("/a/%2e%2e/../b", {"/b", "/a/b"}),
    "a backslash": ("/a\\b", {"/a/b", "/a%5Cb"}),
    "a backslash before dots":
        ("/a\\../b", {"/a/../b", "/b", "/a%5C../b"}),
    "a server reads backslashes as slashes after a client resolved dots":
        ("/a/b\\c/../d\\e", {
            "/a/b/d/e", "/a/b/c/../d/e", "/a/d/e", "/a/d\\e", "/a/d%5Ce",
            "/a/b%5Cc/../d%5Ce",
        }),
})  # fmt: skip
def test_target_has_these_readings(target: str, others: set[str]) -> None:
    first, *rest = readings(target)

    assert first == target
    assert set(rest) == others
    assert len(rest) == len(others)
