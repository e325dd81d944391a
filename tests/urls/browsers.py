"""Compares how we read a URL with httpx and with can-ada, a WHATWG URL parser."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

import httpx

from robotsgate import Origin
from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt._dialect import normalised_targets
from robotsgate.urls._url import readings, resolved, split_url

try:
    import can_ada
except ImportError:  # it has no wheels for Python 3.15 and later
    can_ada = None  # type: ignore[assignment]

_PORTS = {"http:": 80, "https:": 443, "ftp:": 21}


_SECRET = "Xs3cr3tX"


def check(url: str) -> None:
    """Check that a text has no origin, or the origin and target of browsers."""
    try:
        origin, target = split_url(url)
    except InvalidURLError:
        _check_secrecy(url)
        return
    assert Origin.from_url(url) == origin
    assert target.startswith("/")
    assert "#" not in target
    if target[-1] > " ":  # otherwise, the fragment kept it from being stripped
        assert split_url(f"{origin}{target}") == (origin, target)
    _check_origin(origin)
    _check_against_browsers(origin, target, url)


def _check_origin(origin: Origin) -> None:
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


def _check_against_browsers(origin: Origin, target: str, url: str) -> None:
    """Check that browsers, if they accept `url`, request `target` from `origin`."""
    try:
        dialled = _dialled_by_browsers(url)
    except ValueError:
        # Names that IDNA rejects are accepted, as no DNS server knows them.
        assert "xn--" in origin.host
        return
    assert resolved(target) in readings(target)
    assert dialled in {None, (origin, _as_browsers_spell_it(resolved(target)))}


def _check_secrecy(url: str) -> None:
    """Check that an error does not show a possible password."""
    with_secret = url.replace("@", f"{_SECRET}@")
    message = ""
    try:
        split_url(with_secret)
    except InvalidURLError as error:
        message = str(error)
    assert _SECRET not in message


def _dialled_by_browsers(url: str) -> tuple[Origin, str] | None:
    """The origin and the normalized target; `None` if can-ada cannot tell.

    Raises:
        ValueError: browsers would not dial it.
    """
    if can_ada is None or not _is_comparable(url):
        return None
    parsed = can_ada.parse(url)
    origin = Origin(
        scheme=parsed.protocol[:-1],
        host=parsed.hostname.removesuffix("."),
        port=int(parsed.port or _PORTS[parsed.protocol]),
    )
    # can-ada 3.0 does not resolve the dot segments of //.a/.
    return origin, _as_browsers_spell_it(resolved(parsed.pathname) + parsed.search)


def _as_browsers_spell_it(target: str) -> str:
    """`target`, normalized except for "'", which browsers escape in queries."""
    spelt = normalised_targets(target)[0]
    return spelt.replace("%27", "'").removesuffix("?")


def _is_comparable(url: str) -> bool:
    """Whether can-ada accepts `url` and maps its letters as our IDNA tables do.

    It rejects lone surrogates, and the tables of Unicode versions differ in a few
    letters.
    """
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in url)
    return not has_surrogates and "\u1e9e" not in unicodedata.normalize(
        "NFKC", unquote(url)
    )
