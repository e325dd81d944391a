"""Fuzzes URL parsing: it must lead to the same origin and target as in browsers."""

from __future__ import annotations

import httpx

from robotsgate import Origin
from robotsgate.errors import InvalidURLError
from robotsgate.urls._origin import split_url
from robotsgate.urls._path import readings, resolved
from tests.fuzzing.browsers import as_browsers_spell_it, dialled_by_browsers
from tests.fuzzing.target import Target, as_text, in_time

_SECRET = "Xs3cr3tX"


def check(data: bytes) -> None:
    """Parse any text as a URL."""
    url = as_text(data)
    try:
        origin, target = in_time("reading a URL", lambda: split_url(url))
    except InvalidURLError:
        _check_secrecy(url)
        return
    assert Origin.from_url(url) == origin
    assert target.startswith("/")
    assert "#" not in target
    if (
        target[-1] > " "
    ):  # without a fragment, trailing spaces and controls are stripped
        assert split_url(f"{origin}{target}") == (origin, target)
    check_origin(origin)
    check_against_browsers(origin, target, url)


def check_origin(origin: Origin) -> None:
    """Check that `origin` is normalized, and that httpx agrees."""
    assert origin.host.isascii()
    assert origin.host == origin.host.lower()
    assert 1 <= origin.port <= 65_535
    assert Origin.from_url(str(origin)) == origin
    try:
        url = httpx.URL(origin.robots_url)
    except httpx.InvalidURL:  # for names that no DNS server knows
        return
    assert url.raw_host.decode("ascii") == origin.host.strip("[]")
    assert url.path == "/robots.txt"


def check_against_browsers(
    origin: Origin, target: str, url: str, *, base: str | None = None
) -> None:
    """Check that browsers, if they accept `url`, request `target` from `origin`."""
    try:
        dialled = dialled_by_browsers(url, base=base)
    except ValueError:
        # Names that IDNA rejects are accepted, as no DNS server knows them.
        assert "xn--" in origin.host
        return
    assert resolved(target) in readings(target)
    assert dialled in {None, (origin, as_browsers_spell_it(resolved(target)))}


def _check_secrecy(url: str) -> None:
    """Check that an error does not show a possible password."""
    with_secret = url.replace("@", f"{_SECRET}@")
    message = ""
    try:
        split_url(with_secret)
    except InvalidURLError as error:
        message = str(error)
    assert _SECRET not in message


TARGET = Target(
    check=check,
    seeds=(
        b"https://EXAMPLE.com:443/a/../b?c#d",
        b"http://user:pw@h:8080/",
        b"HTTP:\\\\h\\a\t/b",
        b"ftp://xn--bcher-kva.example/%7E",
        "http://bücher.faß/é".encode(),
        "http://a。b\uff0ec/".encode(),
        b"http://0x7f.1/",
        b"http://[::ffff:1.2.3.4]:80/",
        b"http://ex%41mple.com/*$",
        b" http://1.2.3.4./%2e%2e/x ",
        b"//h/page",
        b"mailto:a@b",
    ),
    words=(
        b"http://", b"https://", b"ftp://", b"://", b"//", b"\\\\", b"\\", b"/", b"@",
        b":", b"[", b"]", b"[::1]", b"::", b"::ffff:1.2.3.4", b"%41", b"%2e", b"%00",
        b"%40", b"%2f", b"%c3%9f", b"%", b"xn--", b"xn--zca", b".", b"..", b"/..",
        b"/%2e%2e/", b"0x7f", b"0x", b"08", b"256", b"4294967295", b"65535", b"443",
        b":80", b"\t", b"\n", b"\r", b" ", b"\x00", b"?", b"#", b"*", b"$", b"'",
        "。".encode(), "\uff0e".encode(), "\uff11".encode(), "ß".encode(),
        "ﬀ".encode(), "İ".encode(), "\u200d".encode(), "\xad".encode(),
        "\u0663".encode(), "\u0627".encode(), "\u0300".encode(),
    ),
    max_length=256,
)  # fmt: skip
