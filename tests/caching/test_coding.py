"""Content codings; `tests/fetching/test_body.py` tests the decoding itself."""

from __future__ import annotations

import base64
import gzip
import time

import pytest

from robotsgate.caching._hops import CodingError, decoder_of, file_in
from tests.tables import cases

RULES = b"User-agent: *\nDisallow: /private\n"
GZIPPED = gzip.compress(RULES)
LIMIT = 1_000


@pytest.mark.parametrize(
    "coding",
    ["br", "zstd", "compress", "gzip, gzip", "deflate,gzip", "UTF-8, br"],
)
def test_coding_that_was_not_requested_is_an_error(coding: str) -> None:
    with pytest.raises(CodingError, match="expected the content coding gzip or defl"):
        decoder_of(coding)


def test_absurdly_long_coding_name_is_shortened() -> None:
    with pytest.raises(CodingError) as caught:
        decoder_of(f"br, {'x' * 100_000}")

    assert len(str(caught.value)) < 200


@cases("body coding expected", {
    "text": (RULES, "", RULES),
    "nothing": (b"", "", b""),
    "no rules": (b"<html>", "gzip", b"<html>"),
    "gzip without a label": (GZIPPED, "", RULES),
    "gzip in a declared coding": (GZIPPED, "gzip", RULES),
    "gzip of two members": (GZIPPED * 2, "", RULES * 2),
    "gzip of more than the limit": (
        gzip.compress(RULES * 50)[:-9], "", (RULES * 50)[:LIMIT]),
    "a character set as a coding": (RULES, "UTF-8", RULES),
    "gzip under a wrong label": (GZIPPED, "none", RULES),
    "a comment that looks like a chunk": (b"a # 1\n" + RULES, "x", b"a # 1\n" + RULES),
})  # fmt: skip
def test_file_is_found(body: bytes, coding: str, expected: bytes) -> None:
    assert file_in(body, coding, max_bytes=LIMIT) == expected


@cases("body coding message", {
    "gzip twice without a label": (gzip.compress(GZIPPED), "", "more than once"),
    "truncated gzip": (GZIPPED[:-9], "", "cut off"),
    "corrupt gzip": (GZIPPED[:-8] + bytes(8), "", "corrupt"),
    "nothing in an unknown coding": (b"", "x-unknown", "'x-unknown'"),
    "base64": (base64.b64encode(RULES), "base64", "'base64'"),
    "one line of an unknown coding": (b"User-agent: *", "UTF-8", "'UTF-8'"),
    "chunks": (b"22\r\n" + RULES + b"\r\n0\r\n", "chunked", "'chunked'"),
    "signed chunks": (
        b"22;chunk-signature=0a\r\n" + RULES, "aws-chunked", "'aws-chunked'"),
})  # fmt: skip
def test_body_without_a_readable_file_is_an_error(
    body: bytes, coding: str, message: str
) -> None:
    with pytest.raises(CodingError, match=message):
        file_in(body, coding, max_bytes=LIMIT)


def test_time_for_tiny_gzip_members_grows_with_their_number() -> None:
    """Each one used to copy the rest of the body."""
    body = gzip.compress(b"") * 100_000
    began_at = time.process_time()

    assert file_in(body, "", max_bytes=len(body)) == b""

    assert time.process_time() - began_at < 1
