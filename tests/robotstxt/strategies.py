"""Hypothesis strategies for the parser and the matcher."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = (
    b"User-agent", b"Disallow", b"Allow", b"Sitemap", b"Crawl-delay", b"Request-rate",
    b"disalow", b"useragent", b":", b": ", b" ", b"\t", b"#", b"\n", b"\r", b"\r\n",
    b"*", b"$", b"/", b"a", b"b", b"%41", b"%2F", b"%", b"\xef\xbb\xbf", b"\xef\xbb",
    b"\xef", b"\0", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xa0", b"\xc3\xa9", b"\xff",
    b"/index.html", b"?", b"..", b"http://h/s.xml", b"1/5", b"0.5", b"<html>",
)  # fmt: skip


BODIES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from(_WORDS), max_size=40).map(b"".join),
)
"""Anything a server might send."""

PATTERNS = st.lists(
    st.sampled_from(["/", "a", "b", "ab", "/a", "*", "$", "?", "%24", "c"]), max_size=7
).map("".join)
"""Patterns in normalized spelling; some start with neither "/" nor "*"."""

TARGETS = st.lists(
    st.sampled_from(["/", "a", "b", "ab", "/a", "?", "%24", "c", "$"]), max_size=9
).map(lambda parts: "/" + "".join(parts))
