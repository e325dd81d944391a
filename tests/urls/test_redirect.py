"""Where a response redirects (RFC 9110 §10.2.2), and what cannot be followed."""

from __future__ import annotations

from contextlib import suppress

import httpx
import pytest

from robotsgate.urls._redirect import RedirectError, next_hop

URL = "http://example.com:8080/robots.txt"


def target(*locations: str, url: str = URL, status: int = 301) -> str | None:
    hop = next_hop(url, status, locations)
    if hop is None:
        return None
    origin, target = hop
    assert target.startswith(f"{origin}/")
    return target


TARGETS: dict[str, tuple[str, str]] = {
    "an absolute path": ("/other.txt", "http://example.com:8080/other.txt"),
    "a relative path": ("other.txt", "http://example.com:8080/other.txt"),
    "a relative path with dots": ("./../a/x", "http://example.com:8080/a/x"),
    "only a query": ("?a=1", "http://example.com:8080/robots.txt?a=1"),
    "a path with a query": ("/a?b=/c", "http://example.com:8080/a?b=/c"),
    "another host": ("http://www.example.com/", "http://www.example.com/"),
    "another host without a path": (
        "http://www.example.com",
        "http://www.example.com/",
    ),
    "another host with only a query": ("http://b.com?q", "http://b.com/?q"),
    "another port": ("http://example.com:81/x", "http://example.com:81/x"),
    "the default port, dropped": ("http://example.com:80/", "http://example.com/"),
    "https": ("https://example.com/robots.txt", "https://example.com/robots.txt"),
    "the default port of https": ("https://example.com:443/", "https://example.com/"),
    "no scheme": ("//b.com/robots.txt", "http://b.com/robots.txt"),
    "a scheme in capitals": ("HTTPS://B.com/X", "https://b.com/X"),
    "a host in capitals": ("http://B.COM/X", "http://b.com/X"),
    "an international host": ("http://bücher.de/", "http://xn--bcher-kva.de/"),
    "an IPv6 address": ("http://[0:0::1]:81/x", "http://[::1]:81/x"),
    "a number as an address": ("http://2130706433/", "http://127.0.0.1/"),
    "userinfo, dropped": ("http://user:secret@b.com/x", "http://b.com/x"),
    "userinfo without a scheme": ("//user:secret@b.com/x", "http://b.com/x"),
    "a doubled slash in a path": ("a//b", "http://example.com:8080/a//b"),
    "a doubled slash after the root": ("/a//b", "http://example.com:8080/a//b"),
    "a final semicolon": ("/a;", "http://example.com:8080/a;"),
    "three slashes": ("///b.com/x", "http://b.com/x"),
    "backslashes": ("\\\\b.com\\x?\\", "http://b.com/x?\\"),
    "its own scheme without slashes": ("http:x", "http://example.com:8080/x"),
    "another scheme without slashes": ("https:b.com/x", "https://b.com/x"),
    "another scheme with one slash": ("https:/b.com/x", "https://b.com/x"),
    "a path that looks like a scheme": ("./a:b", "http://example.com:8080/a:b"),
    "a fragment, dropped": ("/x#y", "http://example.com:8080/x"),
    "only a fragment": ("#y", URL),
    "spaces around it": ("  /x \t", "http://example.com:8080/x"),
    "a character beyond ASCII": ("/é", "http://example.com:8080/%C3%A9"),
    "the same URL": (URL, URL),
    "the longest Location": (
        "/" + "x" * 16_383,
        "http://example.com:8080/" + "x" * 16_383,
    ),
}

UNUSABLE: dict[str, tuple[list[str], str]] = {
    "no Location": ([], "without a Location"),
    "Locations that differ": (["/a", "/b", "/a"], "2 different Location headers"),
    "an empty Location": ([""], "without a Location"),
    "a Location that is too long": (["/" + "x" * 16_384], "16385 characters"),
    "ftp": (["ftp://example.com/robots.txt"], "to the scheme 'ftp'"),
    "file": (["file:///etc/passwd"], "to the scheme 'file'"),
    "a WebSocket": (["ws://example.com/robots.txt"], "to the scheme 'ws'"),
    "an unknown scheme": (["gopher://example.com/"], "to the scheme 'gopher'"),
    "port 0": (["http://example.com:0/"], "invalid Location"),
    "a host with a space": (["http://a b.com/"], "invalid Location"),
}


@pytest.mark.parametrize(("location", "expected"), TARGETS.values(), ids=TARGETS)
def test_redirect_leads_to_target(location: str, expected: str) -> None:
    assert target(location) == expected


@pytest.mark.parametrize(("locations", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_location_raises(locations: list[str], message: str) -> None:
    with pytest.raises(RedirectError, match=message):
        target(*locations)


def test_same_location_twice_is_followed() -> None:
    assert target("/a", "/a") == "http://example.com:8080/a"


def test_every_3xx_except_304_redirects() -> None:
    """RFC 9110 §15.4, including statuses that are not understood."""
    followed = [one for one in range(100, 1_000) if target("/a", status=one)]

    assert followed == [one for one in range(300, 400) if one != 304]


@pytest.mark.parametrize("base", ["https://example.com/robots.txt", URL])
def test_location_without_a_scheme_keeps_the_scheme_of_the_base_url(base: str) -> None:
    expected = f"{base.partition(':')[0]}://b.com/x"

    assert target("//b.com/x", url=base) == expected


@pytest.mark.parametrize(
    "location", ["http://user:secret@example.com:0/", "ftp://user:secret@example.com/"]
)
def test_password_in_a_location_is_not_shown(location: str) -> None:
    with pytest.raises(RedirectError) as caught:
        target(location)

    assert "secret" not in str(caught.value)


def test_redirect_target_is_always_a_url_that_httpx_accepts() -> None:
    """httpx rejects control characters, which must not look like a dead host."""
    for octet in (*range(0x20), 0x7F):
        with suppress(RedirectError):
            httpx.Request("GET", target(f"/a{chr(octet)}b") or "")
