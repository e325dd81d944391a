"""Reads a WARC record's HTTP response, with the same decoder and limits as a fetch.

Some crawlers store decoded bodies with the original headers: Common Crawl did so until
August 2018, and its news crawl until May 2019. So a body is only decompressed if its
first bytes look compressed.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import h11

from robotsgate.fetching import Body, CodingError, as_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fastwarc.warc import WarcRecord

_PARTIAL_CONTENT = 206

_BLOCK = 65_536
_LONGEST_HEAD = 100 * 1024  # the same as for a fetch
_STATUS = re.compile(rb"HTTP/\S*[ \t]+([1-9][0-9]{2})(?![^ \t\r\n])")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")

_START = 64
"""How many bytes are enough to tell whether a body is compressed."""
_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,16}[ \t]*(?:;[^\r\n]*)?\r?\n")
_LENGTH = re.compile(r"[0-9]+")
_LABEL = "content-encoding"
_GZIP_CODINGS = {"gzip", "x-gzip"}
_GZIP = b"\x1f\x8b"

_HEAD_BEFORE_CHUNKS = b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"


class StoredResponse(NamedTuple):
    """Status (100 to 999), headers as pairs (name, value), and decoded body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def stored_response(record: WarcRecord, *, max_bytes: int) -> StoredResponse | None:
    """The response in `record`; `None` if it is not HTTP or has incomplete headers.

    The body ends after `max_bytes`. If it is incomplete or corrupt, it is empty, and a
    2xx status becomes 206; with any other status, the status is enough.
    """
    pieces = _pieces(record)
    head = b""
    end = None
    try:
        while end is None and len(head) <= _LONGEST_HEAD:
            head += next(pieces)
            end = _END_OF_HEAD.search(head)
    except (StopIteration, CodingError):
        return None
    match = _STATUS.match(head)
    if end is None or match is None:
        return None
    lines = [line.partition(b":") for line in head[: end.start()].splitlines()]
    headers = as_pairs(
        [(n.strip(), value.strip()) for n, colon, value in lines if colon]
    )
    pieces = chain([head[end.end() :]], pieces)
    status, body = int(match[1]), b""
    try:
        body = _whole_body(status, headers, pieces, max_bytes=max_bytes)
    except CodingError:
        status = _PARTIAL_CONTENT if 200 <= status <= 299 else status  # noqa: PLR2004
    return StoredResponse(status, headers, body)


def _whole_body(
    status: int,
    headers: list[tuple[str, str]],
    pieces: Iterator[bytes],
    *,
    max_bytes: int,
) -> bytes:
    """The decoded body in `pieces`, or as much of it as `status` requires.

    Raises:
        CodingError: the body is truncated or corrupt.
    """
    if Body(status, (), max_bytes=max_bytes).is_over:
        return b""
    values = {name.lower(): value.lower() for name, value in headers}
    is_chunked = "chunked" in values.get("transfer-encoding", "")
    labels = [value.lower() for name, value in headers if name.lower() == _LABEL]
    codings = [one.strip() for one in ",".join(labels).split(",")]
    start, pieces = _beginning(pieces)
    if is_chunked and (not start or _CHUNK.match(start)):
        start, pieces = _beginning(_without_chunks(pieces))
    others = [one for one in codings if one not in _GZIP_CODINGS]
    is_decoded = others != codings and start != b"" and not start.startswith(_GZIP)
    left = ",".join(others if is_decoded else codings)
    body = Body(status, [(_LABEL, left)], max_bytes=max_bytes)
    for piece in pieces:
        body.feed(piece)
        if body.is_over:
            return bytes(body)
    body.finish()
    length = values.get("content-length", "")
    is_length_of_body = not is_chunked and not is_decoded and _LENGTH.fullmatch(length)
    if is_length_of_body and body.raw_bytes < float(length):  # `int` could raise
        raise CodingError(f"expected {float(length):.0f} bytes, got {body.raw_bytes}")
    return bytes(body)


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    yield from iter(partial(record.reader.read, _BLOCK), b"")
    if "WARC-Truncated" in record.headers or "WARC-Segment-Number" in record.headers:
        raise CodingError("the crawler has truncated or split the response")


def _beginning(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of `pieces`, and an iterator over all the pieces."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= _START:
            break
    return start, chain([start], pieces)


def _without_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "")]))
    connection.send(h11.EndOfMessage())
    try:
        for piece in chain([_HEAD_BEFORE_CHUNKS], filter(None, pieces)):
            connection.receive_data(piece)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.EndOfMessage):
                    return
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
    except h11.RemoteProtocolError as error:
        raise CodingError(str(error)) from error
    raise CodingError("the last chunk is missing")
