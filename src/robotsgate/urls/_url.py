"""Splits a URL, tells how its path may be read, and resolves redirects.

**Origin and target.** Follows the WHATWG URL Standard for http, https and ftp wherever
clients do (tabs, IPv4 numbers, IDNA). Otherwise, a crawler could connect to one host
but apply another host's rules. It is stricter than the standard in three ways: exactly
two slashes must come before the host, the host must not be empty, and there must be no
backslash before the path, because clients interpret backslashes differently. A trailing
dot in a host name is dropped. The origin is defined in RFC 9309 §2.3 and RFC 6454 §4.

**Readings.** Dot segments may be resolved by the client or by the server, and clients
and servers differ in the spellings they resolve and in what a backslash means. Some
clients follow the WHATWG URL Standard; others send the path unchanged and let the
server resolve it. So a path with dot segments or backslashes has several readings, and
is allowed only if every reading is.

**Redirects** (RFC 9110 §10.2.2). httpx's redirect handling is not used: it reads the
entire body, raises on some Locations, and follows redirects to other schemes.

This module must never import a network library: names are not resolved here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, Self

from robotsgate._numbers import whole_number
from robotsgate._public import set_module
from robotsgate.errors import InvalidURLError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_BACKSLASH = "\\"
_DOT_SEGMENT = re.compile(r"(?<=/)(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
_DOTS_OR_BACKSLASH = re.compile(r"\\|/(?:\.|%2e){1,2}(?:[/?]|$)", re.IGNORECASE)
C0_AND_SPACE = "".join(map(chr, range(0x21)))
TAB_AND_LINE_ENDS = dict.fromkeys(map(ord, "\t\r\n"))

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}

# A WebSocket is opened with an http or https request (RFC 6455 §3).
_ASKED_AS = {"ws": "http", "wss": "https"}

_MAX_PORT = 65_535

# RFC 1035 §2.3.4: a name has at most 255 bytes, and a label 63; in a URL, each byte of
# a name may take three characters.
_MAX_HOST_LENGTH = 3 * 255
_MAX_LABEL_LENGTH = 63
_TOO_LONG = "expected a host short enough for DNS"

# 2^32 has eleven octal digits. Numbers with more digits are not addresses.
_MAX_DIGITS_OF_AN_ADDRESS = 11
_BEYOND_ALL_ADDRESSES = 2**32

_FORBIDDEN_IN_HOST = frozenset(C0_AND_SPACE + "#/:<>?@[\\]^|%\x7f")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")

# The form of nearly all links, in which hosts are spelt as in `Origin.host`. A host
# whose last label starts with a letter is not an IPv4 address in any notation.
_USUAL_NAME = r"(?:[0-9a-z_-]++\.)*+[a-z][0-9a-z_-]*"
_IPV4_BYTE = "(?:[1-9]?[0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
_USUAL_ORIGIN = re.compile(
    rf"(https?)://({_USUAL_NAME}|{_IPV4_BYTE}(?:\.{_IPV4_BYTE}){{3}})"
    "(?::([1-9][0-9]{0,3}|[1-5][0-9]{4}))?"  # higher ports are rare
)
_LONGEST_USUAL_ORIGIN = len("https://") + 253

# Everything that may be a user name and password, even in an invalid URL. A word before
# ":" is only a scheme if slashes follow; otherwise it may be a user name or a key.
_USERINFO = re.compile(
    r"\A(\s*+(?:mailto:|[a-z][a-z0-9+.-]*+:(?=[/\\]))?+/*+).*@",
    re.IGNORECASE | re.DOTALL,
)

# The links on a page, or in a crawl at any one time, lead to few origins. They take at
# most half a megabyte.
_KEPT_ORIGINS = 1_024

_MAX_LOCATION_LENGTH = 16_384

_SCHEMES = frozenset({"http", "https"})

# The characters besides letters and digits that the WHATWG URL Standard does not escape
# in paths and queries.
_SENT_AS_IT_IS = "!$%&'()*+,-./:;=?@[\\]_|~"


@set_module("robotsgate")
class URLLike(Protocol):
    """A URL object from httpx, httpx2 or yarl; its `str()` is the URL.

    `join` distinguishes a URL object from numbers and `None`. `host` would not work,
    because pyright does not see it on `yarl.URL`.
    """

    def join(self, url: Self, /) -> Self:
        """Resolve `url` against this URL; robotsgate never calls it."""
        ...


@set_module("robotsgate")
@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme, host and port; each origin has one robots.txt (RFC 9309 §2.3).

    Attributes:
        scheme: "http" (including ws), "https" (including wss) or "ftp".
        host: lower-case ASCII without a final dot; punycode for international
            names; IPv4 as four decimal numbers; IPv6 compressed, in brackets.
        port: 1 to 65,535; the scheme's default if the URL has none.
        key: the origin as text, without a default port; also its key in stores.
    """

    scheme: str
    host: str
    port: int
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the key."""
        is_default = self.port == DEFAULT_PORTS[self.scheme]
        port = "" if is_default else f":{self.port}"
        object.__setattr__(self, "key", f"{self.scheme}://{self.host}{port}")

    @classmethod
    def from_url(cls, url: str | URLLike) -> Origin:
        """The origin of `url`.

        Args:
            url: an absolute URL.

        Raises:
            InvalidURLError: the URL is relative; its scheme is not http, https, ws,
                wss or ftp; it has no valid host, or a backslash before its path; or its
                port is outside 1 to 65,535.
        """
        return split_url(url)[0]

    def __str__(self) -> str:
        """The key."""
        return self.key

    @property
    def robots_url(self) -> str:
        """The URL of the origin's robots.txt (RFC 9309 §2.3)."""
        return f"{self.key}/robots.txt"


@set_module("robotsgate.urls")
def split_url(url: str | URLLike) -> tuple[Origin, str]:
    """The origin and target (path and query) of `url`.

    The target starts with "/" and has no fragment; for its interpretations, see
    `readings`.

    Raises:
        InvalidURLError: as for `Origin.from_url`.
    """
    text = str(url)
    given: object = url  # callers without a type checker
    if isinstance(given, bytes):
        raise _error("expected the URL to be a str", url, text)
    slash = text.find("/", 8, _LONGEST_USUAL_ORIGIN + 1)
    origin = _usual_origin(text[:slash]) if slash > 0 else None
    if origin is not None:
        return origin, target_of(text[slash:])
    return _split(url, text)


def target_of(rest: str) -> str:
    """The path and query in `rest`, the part of a URL after its authority.

    `rest` starts with "/". Like clients, this drops the fragment, tabs and line breaks.
    """
    if not rest.isprintable() or rest.endswith(" "):
        rest = rest.rstrip(C0_AND_SPACE).translate(TAB_AND_LINE_ENDS)
    return rest[: rest.index("#")] if "#" in rest else rest


def has_readings(target: str) -> bool:
    """Whether `target` may have several readings; fast for targets with only one."""
    has_escape = "%2e" in target or "%2E" in target
    if not (has_escape or "/." in target or _BACKSLASH in target):
        return False
    return _DOTS_OR_BACKSLASH.search(target) is not None


@set_module("robotsgate.urls")
def readings(target: str) -> tuple[str, ...]:
    """All readings of `target` (path and query), starting with `target` itself.

    Each spelling of dot segments may be resolved or not; a backslash may stay, become a
    slash, or be escaped. The readings of a reading are included, because a client may
    change the path, and then the server may change it again.
    """
    if not has_readings(target):
        return (target,)
    path, question, query = target.partition("?")
    paths = dict.fromkeys(_resolutions(path))
    if _BACKSLASH in path:
        for one in [*paths]:
            paths |= dict.fromkeys(_resolutions(one.replace(_BACKSLASH, "/")))
            paths[one.replace(_BACKSLASH, "%5C")] = None
    return tuple([f"{one}{question}{query}" for one in paths])


def decisive(readings: Sequence[str], allows: Callable[[str], bool]) -> str:
    """The first reading that is not allowed; if all are allowed, the first one."""
    return next((one for one in readings if not allows(one)), readings[0])


def resolved(target: str) -> str:
    """`target` as browsers send it, without backslashes or dot segments."""
    path, question, query = target.partition("?")
    path = _with_literal_dots(path.replace(_BACKSLASH, "/"))
    return f"{_without_dots(path)}{question}{query}"


@set_module("robotsgate.urls")
class RedirectError(ValueError):
    """A redirect without a usable Location."""


def is_redirect(status: int) -> bool:
    """Whether `status` is a 3xx other than 304, which answers a conditional request."""
    return 300 <= status <= 399 and status != HTTPStatus.NOT_MODIFIED  # noqa: PLR2004


@set_module("robotsgate.urls")
def next_hop(
    url: str, status: int, locations: Iterable[str]
) -> tuple[Origin, str] | None:
    """The origin and URL of the next GET; `None` if the response does not redirect.

    Args:
        url: the URL of the response.
        status: its status. Any 3xx except 304 redirects, even one that is not
            understood (RFC 9110 §15.4).
        locations: the values of its Location headers.

    Raises:
        RedirectError: there is no Location, or several different ones, or it is invalid
            or has a scheme other than http and https.
    """
    if not is_redirect(status):
        return None
    values = set(locations)
    if len(values) > 1:
        raise RedirectError(f"a redirect with {len(values)} different Location headers")
    location = next(iter(values), "").strip(" \t")
    if not location:
        raise RedirectError("a redirect without a Location")
    if len(location) > _MAX_LOCATION_LENGTH:
        raise RedirectError(f"a redirect to a Location of {len(location)} characters")
    if not location.isprintable():
        raise RedirectError("a redirect to a Location with control characters")
    absolute = absolute_url(url, location)
    scheme = absolute.partition(":")[0].lower()
    if scheme not in _SCHEMES:
        raise RedirectError(f"a redirect to the scheme {scheme!r}")
    try:
        origin, target = split_url(absolute)
    except InvalidURLError as error:
        raise RedirectError(f"a redirect to an invalid Location: {error}") from error
    return origin, _sent(origin, target)


@set_module("robotsgate.urls")
def wire_url(url: str | URLLike) -> str:
    """`url` as sent to a server: in ASCII, without userinfo, fragment or dot segments.

    Raises:
        InvalidURLError: as for `Origin.from_url`.
    """
    return _sent(*split_url(url))


def absolute_url(url: str, location: str) -> str:
    """`location` as an absolute URL, resolved against `url` as browsers do (WHATWG).

    `urllib.parse.urljoin` is not used, because it drops double slashes and a final ";".
    Dot segments are kept.
    """
    scheme, _, rest = url.partition("://")
    authority, _, old_target = rest.partition("/")
    old_path, _, _ = old_target.partition("?")
    path = re.split("[?#]", location, maxsplit=1)[0]
    query = location[len(path) :]
    path = path.replace("\\", "/")
    own_scheme = _SCHEME.match(path)
    if own_scheme:
        name = own_scheme[1].lower()
        path = path[own_scheme.end() :]
        if name not in _SCHEMES:
            return location
        if name != scheme or path.startswith("//"):
            return f"{name}://{path.lstrip('/')}{query}"
    if path.startswith("//"):
        return f"{scheme}://{path.lstrip('/')}{query}"
    start = f"{scheme}://{authority}"
    if path.startswith("/"):
        return f"{start}{path}{query}"
    if path:
        folder = old_path[: old_path.rfind("/") + 1]
        return f"{start}/{folder}{path}{query}"
    if query.startswith("?"):
        return f"{start}/{old_path}{query}"
    return f"{start}/{old_target}"


def _sent(origin: Origin, target: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 (few robots.txt redirect)

    return f"{origin}{quote(resolved(target), safe=_SENT_AS_IT_IS)}"


def is_url_like(url: object) -> bool:
    """Whether `url` is of a type that represents URLs, even if it is invalid."""
    return isinstance(url, str) or (hasattr(url, "join") and not isinstance(url, bytes))


def without_userinfo(text: str) -> str:
    """`text` with everything before the last "@" hidden, except for a scheme."""
    return _USERINFO.sub(r"\1<hidden>@", text)


def shown_url(url: str | URLLike) -> str:
    """A valid `url` without its userinfo, otherwise unchanged."""
    text = str(url)
    if "@" not in text:
        return text
    scheme, _, rest = _trimmed_url(text).partition(":")
    authority, _ = _split_authority(rest[2:])
    _, at, host = authority.rpartition("@")
    return f"{scheme}://{host}{rest[2 + len(authority) :]}" if at else text


@lru_cache(maxsize=_KEPT_ORIGINS)
def _usual_origin(text: str) -> Origin | None:
    """The origin that `text` names, or `None` if `text` is not in the usual form."""
    match = _USUAL_ORIGIN.fullmatch(text)
    if match is None:
        return None
    scheme, host, port = match.groups()
    return Origin(scheme, host, int(port or DEFAULT_PORTS[scheme]))


def _split(url: str | URLLike, text: str) -> tuple[Origin, str]:
    """Like `split_url`; `text` must be `str(url)`."""
    text = _trimmed_url(text)
    match = _SCHEME.match(text)
    if match is None:
        expected = "expected an absolute URL such as https://host/path"
        raise _error(expected, url, text, _question_of_scheme(text))
    scheme, rest = match[1].lower(), text[match.end() :]
    scheme = _ASKED_AS.get(scheme, scheme)
    if scheme not in DEFAULT_PORTS:
        expected = "expected an http, https, ws, wss or ftp URL"
        raise _error(expected, url, text, _question_of_scheme(text))
    if not rest.startswith("//"):
        raise _error(f"expected // and a host after {scheme}:", url, text)
    authority, target = _split_authority(rest[2:])
    if "\\" in authority:
        raise _error("expected no backslash before the path", url, text)
    host_text, port_text = _split_port(authority.rpartition("@")[2])
    try:
        origin = _origin(scheme, host_text, _port(port_text, scheme))
    except ValueError as error:
        raise _error(str(error), url, text) from error
    return origin, target_of(target)


@lru_cache(maxsize=_KEPT_ORIGINS)
def _origin(scheme: str, host: str, port: int) -> Origin:
    return Origin(scheme, _host(host), port)


def _error(message: str, url: object, text: str, question: str = "") -> InvalidURLError:
    text = without_userinfo(text)
    shown = repr(text) if is_url_like(url) else text
    return InvalidURLError(f"{message}, got {shown}{question}", url=url)


def _question_of_scheme(text: str) -> str:
    """A question to append to an error: `text` with the scheme that may be missing.

    "" unless `text` begins with a name that has a dot, with localhost or with an
    address.
    """
    authority, _ = _split_authority(text)
    name, _ = _split_port(authority)
    is_local = name.lower() == "localhost" or name.startswith("[")
    if "@" in text or not text.isprintable() or not (is_local or "." in name):
        return ""
    try:
        origin = Origin.from_url(f"http://{text}")
    except InvalidURLError:
        return ""
    is_local |= _ends_in_number(origin.host)
    return f"; did you mean {'http' if is_local else 'https'}://{text}?"


def _trimmed_url(text: str) -> str:
    text = text.strip(C0_AND_SPACE)
    return text if text.isprintable() else text.translate(TAB_AND_LINE_ENDS)


def _split_authority(rest: str) -> tuple[str, str]:
    """Split "user@host:80/path?query#fragment" at the start of its path."""
    authority = rest.partition("#")[0].partition("?")[0].partition("/")[0]
    path = rest[len(authority) :]
    return authority, path if path.startswith("/") else f"/{path}"


def _split_port(host_and_port: str) -> tuple[str, str]:
    host, colon, port = host_and_port.rpartition(":")
    if not colon or "]" in port:
        return host_and_port, ""
    return host, port


def _port(text: str, scheme: str) -> int:
    if not text:
        return DEFAULT_PORTS[scheme]
    port = whole_number(text, most=_MAX_PORT + 1)
    if port is None:
        raise ValueError("expected a numeric port")
    if not 1 <= port <= _MAX_PORT:
        raise ValueError(f"expected a port from 1 to {_MAX_PORT}")
    return port


def _host(text: str) -> str:
    if len(text) > _MAX_HOST_LENGTH:
        raise ValueError(_TOO_LONG)
    if text.startswith("["):
        return _ipv6(text)
    host = text
    if "%" in host or not host.isascii():
        host = _domain_to_ascii(_percent_decode(host))
    host = host.lower().removesuffix(".")
    if not host or host.endswith("."):
        raise ValueError("expected a host")
    forbidden = _FORBIDDEN_IN_HOST.intersection(host)
    if forbidden:
        raise ValueError(f"expected a host without {min(forbidden)!r}")
    if _ends_in_number(host):
        return _ipv4(host)
    return host


def _percent_decode(text: str) -> str:
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 (such hosts are rare)

    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8")


def _domain_to_ascii(domain: str) -> str:
    """`domain` converted to ASCII by UTS 46 non-transitional processing.

    Like browsers, this skips the IDNA 2008 checks: names that fail them do not exist in
    DNS. Labels that are too long for DNS are rejected, because punycode conversion
    takes time quadratic in their length.
    """
    import idna  # noqa: PLC0415 (slow to import, and such hosts are rare)

    try:
        mapped = idna.uts46_remap(domain, std3_rules=False)
    except idna.IDNAError as error:
        raise ValueError("expected an international host that IDNA can map") from error
    parts = mapped.split(".")
    if any(len(part) > _MAX_LABEL_LENGTH for part in parts):
        raise ValueError(_TOO_LONG)
    labels = [
        label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}"
        for label in parts
    ]
    return ".".join(labels)


def _ipv6(text: str) -> str:
    if "]" not in text:
        raise ValueError("expected ']' after the IPv6 address")
    if not text.endswith("]") or "%" in text:
        raise ValueError("expected an IPv6 address in brackets, without a zone")
    from ipaddress import AddressValueError, IPv6Address  # noqa: PLC0415 (as idna)

    try:
        address = IPv6Address(text[1:-1])
    except AddressValueError as error:
        raise ValueError("expected an IPv6 address in brackets") from error
    mapped = address.ipv4_mapped
    if mapped is None:
        return f"[{address.compressed}]"
    # Not `compressed`: since Python 3.13, it uses dotted notation here.
    high, low = divmod(int(mapped), 1 << 16)
    return f"[::ffff:{high:x}:{low:x}]"


def _ends_in_number(host: str) -> bool:
    """Whether the WHATWG standard treats `host` as an IPv4 address, valid or not."""
    last = host.rpartition(".")[2]
    return (last.isdigit() and last.isascii()) or _ipv4_number(last) is not None


def _ipv4(host: str) -> str:
    parts = host.split(".")
    numbers = [_ipv4_number(part) for part in parts]
    *front, last = (number or 0 for number in numbers)
    if (
        None in numbers
        or len(parts) > 4  # noqa: PLR2004
        or any(number > 255 for number in front)  # noqa: PLR2004
        or last >= 256 ** (5 - len(parts))
    ):
        raise ValueError("expected an IPv4 address")
    for position, number in enumerate(front):
        last += number << 8 * (3 - position)
    return ".".join(map(str, last.to_bytes(4, "big")))


def _ipv4_number(text: str) -> int | None:
    """Parse a number as inet_aton does: 0x for hexadecimal, 0 for octal."""
    digits, base = text, 10
    if text.startswith("0x"):
        digits, base = text[2:], 16
    elif text.startswith("0") and len(text) > 1:
        digits, base = text[1:], 8
    if not text or not frozenset("0123456789abcdef"[:base]).issuperset(digits):
        return None
    digits = digits.lstrip("0")
    if len(digits) > _MAX_DIGITS_OF_AN_ADDRESS:
        return _BEYOND_ALL_ADDRESSES
    return int(digits or "0", base)


def _resolutions(path: str) -> tuple[str, ...]:
    """`path` unchanged, and with its dot segments resolved in every possible way."""
    literal = _without_dots(path)
    every = _without_dots(_with_literal_dots(path))
    return path, literal, every, _without_dots(_with_literal_dots(literal))


def _with_literal_dots(path: str) -> str:
    """`path` with its escaped dot segments written as "." and ".."."""
    return _DOT_SEGMENT.sub(lambda dots: dots[0].lower().replace("%2e", "."), path)


def _without_dots(path: str) -> str:
    """`path` with its "." and ".." segments resolved (RFC 3986 §5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
