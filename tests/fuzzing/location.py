"""Fuzzes redirects: they lead only to http and https, and as in browsers."""

from __future__ import annotations

from robotsgate import Origin
from robotsgate.urls._redirect import RedirectError, redirect_target
from tests.fuzzing.target import Target, as_header, fields, in_time, joined
from tests.fuzzing.url import check_against_browsers, check_origin

_FIRST_URL = "https://example.com/robots.txt"


def check(data: bytes) -> None:
    """Follow two redirects in a row."""
    first, second = map(as_header, fields(data, 2))
    url = _check_redirect(_FIRST_URL, first)
    _check_redirect(url or _FIRST_URL, second)


def _check_redirect(url: str, location: str) -> str | None:
    """Check the target of a redirect from `url`, and return it if there is one."""
    try:
        result = in_time("joining", lambda: redirect_target(url, location))
    except RedirectError:
        return None
    origin = Origin.from_url(result)
    target = result.removeprefix(str(origin))
    assert target.startswith("/")
    assert origin.scheme in {"http", "https"}
    check_origin(origin)
    if not result.endswith(" "):  # protected by a fragment
        assert redirect_target(url, result) == result
    check_against_browsers(origin, target, location, base=url)
    return result.replace(" ", "%20")


TARGET = Target(
    check=check,
    seeds=(
        joined(b"https://www.example.com/robots.txt", b"/new/robots.txt"),
        joined(b"//cdn.example/a/b/", b"../c?d#e"),
        joined(b"robots.txt", b"?q"),
        joined(b"http:\\\\h\\x", b"\\\\h\\y"),
        joined(b"http://u:p@h:8080/;p?q", b";x"),
        joined(b"http:foo", b"https:/foo"),
        joined(b"ftp://h/robots.txt", b"javascript:0"),
        joined("http://bücher.example/é".encode(), b"\xe9?\xe9"),
        joined(b"#f", b""),
    ),
    words=(
        b"http://", b"https://", b"http:", b"https:", b"//", b"///", b"\\\\", b"\\",
        b"/", b"/.", b"/..", b"../", b"./", b"..", b"%2e", b"/%2e%2e", b";", b"?", b"#",
        b"@", b":", b":80", b":443", b"[::1]", b"xn--", b"1.2.3.4", b"0x7f.1", b" ",
        b"%", b"%20", b"*", b"$", b"'", b"\xfe", b"\xe9", "é".encode(),
        "\uff0f".encode(), "。".encode(), "\xa0".encode(),
    ),
    max_length=256,
)  # fmt: skip
