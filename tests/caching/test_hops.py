"""Where a GET may go, and the file in its body; see also `tests/fetching`."""

from __future__ import annotations

import base64
import gzip
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._hops import (
    AddressRefusedError,
    CodingError,
    FetchGuard,
    Hops,
    decoder_of,
    file_in,
    literal_address,
)
from robotsgate.caching._policy import AddressGuard, Policy
from robotsgate.urls._url import Origin
from tests.tables import cases

from .builders import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REDIRECTS, PUBLIC_ONLY = AddressGuard.REDIRECTS, AddressGuard.PUBLIC_ONLY
PUBLIC, OTHER_PUBLIC = "93.184.216.34", "2606:4700::1111"
LOOPBACK, PRIVATE = "127.0.0.1", "10.0.0.1"


@cases("status location is_followed", {
    "a redirect to another host is followed": (302, "https://b.example/a", True),
    "a 300 is followed": (300, "/a", True),
    "a 304 is not followed": (304, "/a", False),
    "a 201 is not followed": (201, "/a", False),
    "a loop is not followed": (302, "/robots.txt", False),
    "another scheme is not followed": (302, "ftp://b.example/a", False),
})  # fmt: skip
def test_only_redirects_are_followed(
    status: int, location: str, *, is_followed: bool
) -> None:
    hops = Hops(Origin.from_url(ORIGIN), policy=Policy())

    outcome = hops.after(status, {"location": location}, b"")

    assert (outcome is None) == is_followed


def test_sixth_redirect_is_not_followed() -> None:
    hops = Hops(Origin.from_url(ORIGIN), policy=Policy())

    outcomes = [hops.after(302, {"location": f"/{n}"}, b"") for n in range(6)]

    assert [outcome is None for outcome in outcomes] == [True] * 5 + [False]


def guard(mode: AddressGuard, *allowed: str) -> FetchGuard:
    return FetchGuard(Policy(address_guard=mode, allowed_networks=allowed))


def permitted(fetch: FetchGuard, *hops: str) -> list[bool]:
    """Whether each hop, a string of space-separated addresses, is permitted."""

    def check(hop: str) -> None:
        fetch.permit("host", [ip_address(text) for text in hop.split()])

    return answers(check, hops)


def answers(check: Callable[[str], None], values: Iterable[str]) -> list[bool]:
    """Whether `check` accepts each of the `values`, in order."""
    results = []
    for value in values:
        try:
            check(value)
        except AddressRefusedError:
            results.append(False)
        else:
            results.append(True)
    return results


@cases("mode hops expected", {
    "a public host": (REDIRECTS, [PUBLIC], [True]),
    "a host on a closed network": (REDIRECTS, [PRIVATE], [True]),
    "public to public": (REDIRECTS, [PUBLIC, OTHER_PUBLIC], [True, True]),
    "public to special": (REDIRECTS, [PUBLIC, LOOPBACK], [True, False]),
    "special to special": (REDIRECTS, [PRIVATE, LOOPBACK], [True, True]),
    "special to public to special":
        (REDIRECTS, [PRIVATE, PUBLIC, PRIVATE], [True, True, False]),
    "a name with both kinds, to special":
        (REDIRECTS, [f"{PRIVATE} {PUBLIC}", PRIVATE], [True, False]),
    "public hosts only, a public one": (PUBLIC_ONLY, [PUBLIC], [True]),
    "public hosts only, a private one": (PUBLIC_ONLY, [PRIVATE], [False]),
    "no guard": (AddressGuard.OFF, [PUBLIC, LOOPBACK, PRIVATE], [True, True, True]),
})  # fmt: skip
def test_guard_permits_or_refuses_each_hop(
    mode: AddressGuard, hops: list[str], expected: list[bool]
) -> None:
    assert permitted(guard(mode), *hops) == expected


def test_only_public_addresses_are_permitted_after_a_public_hop() -> None:
    fetch = guard(REDIRECTS)
    both = [ip_address(PRIVATE), ip_address(PUBLIC)]
    fetch.permit("first", [ip_address(PUBLIC)])

    assert fetch.permit("both", both) == [ip_address(PUBLIC)]


@pytest.mark.parametrize("mode", [PUBLIC_ONLY, REDIRECTS])
def test_allowed_network_counts_as_public(mode: AddressGuard) -> None:
    fetch = guard(mode, "10.0.0.0/24", "fd00::/16")

    hops = (PRIVATE, "fd00::1", PUBLIC, PRIVATE, "10.0.1.1", LOOPBACK)

    assert permitted(fetch, *hops) == [True, True, True, True, False, False]


def test_refusal_names_the_host_the_address_and_its_class() -> None:
    with pytest.raises(
        AddressRefusedError,
        match=r"refused 10\.0\.0\.1 \(private\), an address of intern\.example",
    ):
        guard(PUBLIC_ONLY).permit("intern.example", [ip_address(PRIVATE)])


def test_refusal_names_a_host_that_is_an_ip_address_only_once() -> None:
    with pytest.raises(AddressRefusedError, match=r"refused 10\.0\.0\.1 \(private\)$"):
        guard(PUBLIC_ONLY).permit(PRIVATE, [ip_address(PRIVATE)])


@pytest.mark.parametrize(("mode", "hosts", "expected"), [
    (REDIRECTS, ["example.com", PRIVATE], [True, False]),
    (REDIRECTS, ["example.com", "[::1]"], [True, False]),
    (REDIRECTS, ["example.com", "localhost"], [True, False]),
    (REDIRECTS, ["example.com", "a.localhost."], [True, False]),
    (REDIRECTS, ["example.com", "intern.example"], [True, True]),
    (REDIRECTS, [PRIVATE, LOOPBACK, "localhost"], [True, True, True]),
    (PUBLIC_ONLY, ["example.com", "localhost"], [True, False]),
    (PUBLIC_ONLY, [PUBLIC, f"[{OTHER_PUBLIC}]"], [True, True]),
    (AddressGuard.OFF, ["example.com", LOOPBACK], [True, True]),
])  # fmt: skip
def test_check_host_looks_only_at_the_text_of_the_host(
    mode: AddressGuard, hosts: list[str], expected: list[bool]
) -> None:
    assert answers(guard(mode).check_host, hosts) == expected


@pytest.mark.parametrize(("host", "address"), [
    ("127.0.0.1", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"), ("[::1]", "::1"),
    ("::1", "::1"), ("LOCALHOST", "127.0.0.1"), ("x.localhost", "127.0.0.1"),
    ("example.com", None), ("notlocalhost", None), ("server1", None), ("", None),
])  # fmt: skip
def test_literal_address_is_read_from_the_host(host: str, address: str | None) -> None:
    expected = None if address is None else ip_address(address)

    assert literal_address(host) == expected


RULES = b"User-agent: *\nDisallow: /private\n"
GZIPPED = gzip.compress(RULES)
LIMIT = 1_000


@pytest.mark.parametrize("coding", [
    "br", "zstd", "compress", "gzip, gzip", "deflate,gzip", "UTF-8, br",
])  # fmt: skip
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
    # They took 180 ms.
    "very many gzip members": (gzip.compress(b"") * 25_000, "", "more than 100"),
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
