"""The body of a response: codings, chunks, damage and limits."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.caching._hops import CodingError
from robotsgate.fetching._body import Body, decoded_body
from robotsgate.fetching._fetcher import FetchedResponse
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TEXT = b"User-agent: *\nDisallow: /private\n" + bytes(range(0, 256, 4))
MEBIBYTE = 2**20
NO_LIMIT = 10 * MEBIBYTE


def raw_deflate(body: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(body) + coder.flush()


def stored_deflate(body: bytes) -> bytes:
    coder = zlib.compressobj(level=0, wbits=-15)
    return coder.compress(body) + coder.flush()


def gzip_with_name(body: bytes) -> bytes:
    """A gzip member with all optional header fields (RFC 1952 §2.3)."""
    plain = gzip.compress(body)
    fields = b"\x03\x00abc" + b"robots.txt\0" + b"a comment\0"
    head = plain[:3] + bytes([0b11110]) + plain[4:10] + fields
    return head + (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little") + plain[10:]


# A block of the reserved type 11 (RFC 1951 §3.2.3).
INVALID_BLOCK = b"\x07" + bytes(30)

HALF = len(TEXT) // 2
CODED: dict[str, tuple[str, bytes]] = {
    "no coding": ("", TEXT),
    "identity": ("identity", TEXT),
    "gzip": ("gzip", gzip.compress(TEXT)),
    "gzip by its old name": ("x-gzip", gzip.compress(TEXT)),
    "gzip with capitals and spaces": (" GZip\t", gzip.compress(TEXT)),
    "gzip with every optional field": ("gzip", gzip_with_name(TEXT)),
    "gzip beside others": ("identity, gzip, UTF-8,", gzip.compress(TEXT)),
    "a coding that is not registered": ("aws-chunked", TEXT),
    "gzip with many members, some empty": ("gzip", b"".join(
        gzip.compress(TEXT[at : at + 40]) + gzip.compress(b"")
        for at in range(0, len(TEXT), 40))),
    "gzip with zeros after it": ("gzip", gzip.compress(TEXT) + bytes(600)),
    "gzip with rubbish after it": ("gzip", gzip.compress(TEXT) + b"rubbish"),
    "deflate in zlib": ("deflate", zlib.compress(TEXT)),
    "deflate in zlib, not compressed": ("deflate", zlib.compress(TEXT, 0)),
    "deflate in zlib with rubbish after it": ("deflate", zlib.compress(TEXT) + b"x"),
    "deflate, raw": ("deflate", raw_deflate(TEXT)),
    "deflate, raw, not compressed": ("deflate", stored_deflate(TEXT)),
    "deflate, raw, with rubbish after it": ("deflate", raw_deflate(TEXT) + b"\x1f\x8b"),
}  # fmt: skip

CHUNKINGS: dict[str, Callable[[bytes], Iterable[bytes]]] = {
    "whole": lambda sent: [sent],
    "one byte at a time": lambda sent: (bytes([octet]) for octet in sent),
    "with empty chunks between": lambda sent: [
        b"",
        sent[:10],
        b"",
        b"",
        sent[10:],
        b"",
    ],
}


def read_body(chunks: Iterable[bytes], coding: str, *, max_bytes: int) -> bytes:
    """The decoded body of a 200 response."""
    headers = [("Content-Encoding", coding)]
    body = Body(200, headers, max_bytes=max_bytes)
    for chunk in chunks:
        body.feed(chunk)
        if body.is_over:
            break
    body.finish()
    return bytes(body)


def decoded(sent: bytes, coding: str, *, max_bytes: int) -> bytes:
    """The decoded body of a response that the caller's client has read."""
    response = FetchedResponse(
        status=200,
        headers=[("content-encoding", coding)],
        body=sent,
        is_decoded=False,
    )
    return decoded_body(response, max_bytes=max_bytes)


@pytest.mark.parametrize("chunking", CHUNKINGS.values(), ids=CHUNKINGS)
@pytest.mark.parametrize(("coding", "sent"), CODED.values(), ids=CODED)
def test_body_is_decoded_up_to_the_limit_however_it_arrives(
    coding: str, sent: bytes, chunking: Callable[[bytes], Iterable[bytes]]
) -> None:
    for max_bytes in (1, 2, HALF, len(TEXT) - 1, len(TEXT), len(TEXT) + 1, NO_LIMIT):
        body = read_body(chunking(sent), coding, max_bytes=max_bytes)

        assert body == TEXT[:max_bytes]


@pytest.mark.parametrize(("coding", "sent"), CODED.values(), ids=CODED)
def test_body_is_decoded_wherever_it_is_split_in_two(coding: str, sent: bytes) -> None:
    bodies = {
        read_body([sent[:at], sent[at:]], coding, max_bytes=NO_LIMIT)
        for at in range(len(sent) + 1)
    }

    assert bodies == {TEXT}


@cases("coding sent", {
    "no coding": ("", TEXT * 1_000),
    "gzip": ("gzip", gzip.compress(TEXT * 1_000, 0)),
    "deflate": ("deflate", zlib.compress(TEXT * 1_000, 0)),
})  # fmt: skip
def test_nothing_is_read_beyond_the_limit(coding: str, sent: bytes) -> None:
    chunks_read: list[bytes] = []

    def chunks() -> Iterable[bytes]:
        for at in range(0, len(sent), 100):
            chunks_read.append(sent[at : at + 100])
            yield chunks_read[-1]

    body = read_body(chunks(), coding, max_bytes=1_000)

    assert body == (TEXT * 20)[:1_000]
    assert len(chunks_read) <= 12


@pytest.mark.parametrize("coding", ["", "gzip", "deflate"])
def test_empty_input_is_an_empty_body_in_every_coding(coding: str) -> None:
    assert read_body([], coding, max_bytes=10) == b""
    assert read_body([b"", b""], coding, max_bytes=10) == b""
    assert decoded(b"", "br", max_bytes=10) == b""


@pytest.mark.parametrize("chunking", CHUNKINGS.values(), ids=CHUNKINGS)
@cases("coding sent", {
    "gzip": ("gzip", gzip.compress(TEXT)),
    "deflate in zlib": ("deflate", zlib.compress(TEXT)),
    "deflate, raw": ("deflate", raw_deflate(TEXT)),
})  # fmt: skip
def test_encoded_body_cut_off_anywhere_is_an_error(
    coding: str, sent: bytes, chunking: Callable[[bytes], Iterable[bytes]]
) -> None:
    for length in range(1, len(sent)):
        with pytest.raises(CodingError, match="cut off"):
            read_body(chunking(sent[:length]), coding, max_bytes=NO_LIMIT)


def test_encoded_body_cut_off_beyond_the_limit_is_not_an_error() -> None:
    sent = gzip.compress(TEXT * 100)[:-9]

    body = read_body([sent], "gzip", max_bytes=len(TEXT))

    assert body == TEXT


@pytest.mark.parametrize("chunking", CHUNKINGS.values(), ids=CHUNKINGS)
@cases("coding sent", {
    "text for gzip": ("gzip", TEXT),
    "zlib for gzip": ("gzip", zlib.compress(TEXT)),
    "gzip with a wrong checksum": ("gzip", gzip.compress(TEXT)[:-8] + bytes(8)),
    "gzip with a broken block": ("gzip", gzip.compress(TEXT)[:10] + INVALID_BLOCK),
    "gzip with a broken second member":
        ("gzip", gzip.compress(TEXT) + gzip.compress(TEXT)[:10] + INVALID_BLOCK),
    "text for deflate": ("deflate", b"User-agent: *"),
    "gzip for deflate": ("deflate", gzip.compress(TEXT)),
    "zlib with a wrong checksum": ("deflate", zlib.compress(TEXT)[:-4] + bytes(4)),
})  # fmt: skip
def test_body_that_does_not_fit_its_coding_is_an_error(
    coding: str, sent: bytes, chunking: Callable[[bytes], Iterable[bytes]]
) -> None:
    with pytest.raises(CodingError, match="corrupt") as caught:
        read_body(chunking(sent), coding, max_bytes=NO_LIMIT)

    assert isinstance(caught.value.__cause__, zlib.error)


@cases("coding sent", {
    "gzip": ("gzip", gzip.compress(bytes(10 * MEBIBYTE))),
    "gzip with many members": ("gzip", gzip.compress(bytes(MEBIBYTE)) * 10),
    "deflate": ("deflate", zlib.compress(bytes(10 * MEBIBYTE))),
})  # fmt: skip
def test_memory_for_a_decompression_bomb_is_bounded_by_the_limit(
    coding: str, sent: bytes
) -> None:
    max_bytes = 512_001
    tracemalloc.start()

    try:
        body = read_body([sent], coding, max_bytes=max_bytes)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert body == bytes(max_bytes)
    # The body being built, its copy and one decoded piece.
    assert peak < 4 * max_bytes


@given(
    pieces=st.lists(st.binary(max_size=50), max_size=8),
    members=st.lists(st.binary(max_size=50), min_size=1, max_size=4),
    coding=st.sampled_from(["gzip", "deflate", "identity"]),
)
def test_decoding_raises_only_coding_errors(
    pieces: list[bytes], members: list[bytes], coding: str
) -> None:
    prefix = b"".join(map(gzip.compress, members)) if coding == "gzip" else b""

    try:
        body = read_body([prefix, *pieces], coding, max_bytes=1_000)
    except CodingError:
        return

    assert len(body) <= 1_000


@pytest.mark.parametrize(("coding", "sent"), CODED.values(), ids=CODED)
def test_body_read_by_the_callers_client_is_decoded_the_same_way(
    coding: str, sent: bytes
) -> None:
    for max_bytes in (1, HALF, len(TEXT) + 1):
        assert decoded(sent, coding, max_bytes=max_bytes) == TEXT[:max_bytes]


def test_body_cut_off_by_the_callers_client_is_an_error() -> None:
    with pytest.raises(CodingError, match="cut off"):
        decoded(gzip.compress(TEXT)[:-9], "gzip", max_bytes=NO_LIMIT)


def test_body_that_the_callers_client_cut_at_the_limit_is_not_an_error() -> None:
    """Incompressible data gets longer when encoded."""
    sent = gzip.compress(TEXT, 0)[:50]

    assert decoded(sent, "gzip", max_bytes=50) == TEXT[:35]
