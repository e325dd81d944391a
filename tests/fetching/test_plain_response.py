"""Usual responses are read without h11, and as h11 would read them."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robotsgate.caching._hops import USED_HEADERS
from robotsgate.fetching._direct import plain_response
from robotsgate.fetching._fetcher import as_pairs

HEAD = b"HTTP/1.1 200 OK\r\nServer: a\r\n"
LONG = HEAD + b"Content-Length: 4\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"

PLAIN = {
    "a length": LONG + b"\r\nUser",
    "part of the content": LONG + b"\r\nUs",
    "more than the content": LONG + b"\r\nUser-agent",
    "no reason": b"HTTP/1.0 404\r\ncontent-length:4\r\n\r\ngone",
    "repeated headers": LONG + b"Cache-Control: a\r\ncache-control:  b  c \r\n\r\nUser",
    "an empty header": LONG + b"Cache-Control:\r\nLocation: \r\n\r\nUser",
    "chunks": CHUNKED + b"\r\n2\r\nUs\r\n00A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n",
}
UNUSUAL = {
    "half a head": LONG,
    "an informational response": b"HTTP/1.1 103 Early Hints\r\n\r\n"
    + LONG
    + b"\r\nUser",
    "another version": LONG.replace(b"1.1", b"1.2") + b"\r\nUser",
    "no length": HEAD + b"\r\nUser",
    "two lengths": LONG + b"Content-Length: 4\r\n\r\nUser",
    "a length and chunks": LONG + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative length": LONG.replace(b"4", b"-4") + b"\r\nUser",
    "a status without content": LONG.replace(b"200", b"304") + b"\r\nUser",
    "bare line feeds": LONG.replace(b"\r", b"") + b"\nUser",
    "a folded line": LONG + b" 5\r\n\r\nUser",
    "a space before a colon": LONG + b"Location : /\r\n\r\nUser",
    "other characters": LONG + "Location: /é\r\n\r\nUser".encode(),
    "another coding": CHUNKED.replace(b"chunked", b"gzip") + b"\r\n0\r\n\r\n",
    "part of a chunk": CHUNKED + b"\r\n8\r\nUser",
    "no last chunk": CHUNKED + b"\r\n4\r\nUser\r\n",
    "a chunk of another size": CHUNKED + b"\r\n3\r\nUser\r\n0\r\n\r\n",
    "an extension": CHUNKED + b"\r\n4;a\r\nUser\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"\r\n0\r\nA: b\r\n\r\n",
}


def by_h11(data: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    """The status, the used headers, and the content of the response in `data`."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(data)
    response = parser.next_event()
    assert isinstance(response, h11.Response)
    pairs = as_pairs(response.headers.raw_items())
    content = b""
    while isinstance(event := parser.next_event(), h11.Data):
        content += event.data
    return (
        response.status_code,
        [pair for pair in pairs if pair[0].lower() in USED_HEADERS],
        content,
    )


@pytest.mark.parametrize("data", PLAIN.values(), ids=PLAIN)
def test_usual_response_is_read_without_h11(data: bytes) -> None:
    assert plain_response(data) is not None


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL)
def test_response_is_left_to_h11_if_it_has(data: bytes) -> None:
    assert plain_response(data) is None


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A usual response with a few changed, added or missing bytes, or cut off."""
    data = bytearray(draw(st.sampled_from([*PLAIN.values()])))
    places = st.integers(0, len(data))
    for start in draw(st.lists(places, max_size=3)):
        new = draw(st.sampled_from([*(b"%c" % n for n in range(256)), b"", b"\r\n"]))
        data[start : start + draw(st.integers(0, 2))] = new
    return bytes(data[: draw(places)] if draw(st.booleans()) else data)


@given(changed())
@example(PLAIN["repeated headers"])
@example(PLAIN["chunks"])
def test_response_is_read_as_h11_reads_it(data: bytes) -> None:
    plain = plain_response(data)
    if plain is not None:
        content = plain.content[: plain.length]
        assert (plain.status, plain.headers, content) == by_h11(data)
