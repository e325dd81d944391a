"""Decides where each GET of a fetch may go, and what its response means.

A response may redirect (RFC 9309 §2.3.1.2). Redirect targets and DNS answers are
controlled by others, who could point them at a service in the crawler's own network
(server-side request forgery), so a guard decides which addresses a GET may connect to.
A few kilobytes of a content coding (RFC 9110 §8.4.1) can decompress to gigabytes, so
each step limits the number of decoded bytes.

Pure, except for the state of one fetch: it sends nothing, and must never resolve names,
which is the job of `fetching`.
"""

from __future__ import annotations

import re
import zlib
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from robotsgate._public import set_module
from robotsgate.caching._freshness import CACHING_HEADERS
from robotsgate.caching._outcome import FailureKind, Outcome, fault, is_success, is_wall
from robotsgate.caching._policy import AddressGuard
from robotsgate.robotstxt._headers import header_values, headers_named
from robotsgate.robotstxt._robots_txt import has_rules
from robotsgate.urls._address_class import AddressClass, address_class
from robotsgate.urls._url import RedirectError, next_hop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._outcome import Redirects
    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.urls._address_class import IPAddress
    from robotsgate.urls._url import Origin

# The headers that tell where a body ends, even if the connection is lost.
_ENDS = frozenset({"content-length", "transfer-encoding"})

# How much of a URL from a server is kept in the entry.
_LONGEST_URL = 2_048

# The content type has no effect, but may interest the author of the file.
_KEPT_HEADERS = frozenset({*CACHING_HEADERS, "content-type"})
USED_HEADERS = _KEPT_HEADERS | _ENDS | {"location", "content-encoding"}


@set_module("robotsgate.archive")
class Hops:
    """The GETs of one fetch, starting with an origin's robots.txt or another `url`.

    The current one is for `url`, in ASCII, on `origin`.
    """

    def __init__(
        self, origin: Origin, *, policy: Policy, url: str | None = None
    ) -> None:
        self.origin: Origin = origin
        self.url: str = url or origin.robots_url
        self._policy = policy
        # Maps the URL of each GET to the status that redirected there; `None` for the
        # first.
        self._statuses: dict[str, int | None] = {self.url: None}

    @property
    def redirects(self) -> Redirects:
        return tuple(
            (url[:_LONGEST_URL], status)
            for url, status in self._statuses.items()
            if status is not None
        )

    def after(
        self,
        status: int,
        headers: HeadersLike,
        body: bytes,
        *,
        is_archived: bool = False,
    ) -> Outcome | None:
        """The outcome if this response ends the fetch; `None` if it continues at `url`.

        The `status` is 100 to 999. The `body` is as in `Outcome`, apart from a gzip
        layer without a label. An archived response may have kept a Content-Encoding
        without the coding, so that header has no meaning.
        """
        # This raises if the caller's client is at fault.
        used = headers_named(headers, USED_HEADERS)
        try:
            return self._outcome(status, used, body, is_archived=is_archived)
        except CodingError as unreadable:
            return Outcome(
                failure=FailureKind.CODING,
                error=f"{type(unreadable).__name__}: {unreadable}",
                redirects=self.redirects,
            )
        except Exception as bug:  # noqa: BLE001 (see `judge`)
            return fault(bug, self.redirects)

    def _outcome(
        self,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
        *,
        is_archived: bool,
    ) -> Outcome | None:
        joined: dict[str, str] = {}
        for name, value in headers:
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        kept = {name: joined[name] for name in joined if name in _KEPT_HEADERS}
        locations = [value for name, value in headers if name == "location"]
        error = None
        try:
            hop = next_hop(self.url, status, locations)
        except RedirectError as unusable:
            error = str(unusable)
        else:
            if hop is not None:
                return self._follow(hop, status, kept)
        if is_success(status):
            coding = "" if is_archived else joined.get("content-encoding", "")
            if coding and not body and _ENDS.isdisjoint(joined):
                # The connection may have been lost before the first byte.
                raise CodingError(
                    "the compressed body is cut off before its first byte"
                )
            most = self._policy.max_body_bytes + 1
            body = file_in(body, coding, max_bytes=most)
        of_wall = is_wall(status, body, self._policy)
        if of_wall:
            error = f"a {status} without any rules, typical of a bot wall"
        return Outcome(
            status=status,
            headers=kept,
            body=body,
            redirects=self.redirects,
            error=error,
            is_wall=of_wall,
        )

    def _follow(
        self, hop: tuple[Origin, str], status: int, kept: dict[str, str]
    ) -> Outcome | None:
        """Continue with `hop`, unless that would be a loop or one redirect too many."""
        origin, url = hop
        if url in self._statuses:
            error = f"a redirect loop at {url}"
        elif len(self._statuses) > self._policy.max_redirects:
            error = f"more than {self._policy.max_redirects} redirects"
        else:
            self.origin, self.url = origin, url
            self._statuses[url] = status
            return None
        return Outcome(
            status=status,
            headers=kept,
            redirects=self.redirects,
            error=error,
            has_too_many_redirects=True,
        )


class AddressRefusedError(ConnectionError):
    """The guard refused all of a host's addresses."""


class FetchGuard:
    """The guard for one fetch; remembers whether a hop has used a public address."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._was_public = False

    def permit(self, host: str, addresses: Sequence[IPAddress]) -> Sequence[IPAddress]:
        """Return the `addresses` (≥ 1) of `host` that the next hop may connect to.

        If any of them is public, the fetch is considered to have used a public address
        from then on.
        """
        public = [one for one in addresses if is_public(one, self._policy)]
        permitted = addresses if self._permits_special() else public
        if not permitted:
            refused = addresses[0]
            name = f", an address of {host}" if host != str(refused) else ""
            kind = address_class(refused).value
            raise AddressRefusedError(
                f"the address guard refused {refused} ({kind}){name}"
            )
        self._was_public |= bool(public)
        return permitted

    def check_host(self, host: str) -> None:
        """Like `permit`, but for a `host` that the caller's client connects to.

        The address is known only if `host` is an IP address or localhost. Any other
        name is considered public.
        """
        address = literal_address(host)
        if address is None:
            self._was_public = True
        else:
            self.permit(host, [address])

    def _permits_special(self) -> bool:
        if self._policy.address_guard is AddressGuard.REDIRECTS:
            return not self._was_public
        return self._policy.address_guard is AddressGuard.OFF


def is_public(address: IPAddress, policy: Policy) -> bool:
    return address_class(address) is AddressClass.PUBLIC or any(
        address in ip_network(text) for text in policy.allowed_networks
    )


def literal_address(host: str) -> IPAddress | None:
    """The IP address that `host` stands for; `None` if it must be resolved.

    `host` is that of an `Origin`, so IP addresses are in canonical form; an IPv6
    address may have brackets.
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761 §6.3
        name = "127.0.0.1"
    if not (name[-1:].isdigit() or ":" in name):  # `ip_address` would raise slowly
        return None
    try:
        return ip_address(name)
    except ValueError:
        return None


ACCEPT_ENCODING = "gzip, deflate"

_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_GZIP = 31
_WINDOW_ZLIB = 15
_WINDOW_RAW = -15

# Files have one member. An empty one takes 20 bytes, but 7 microseconds to decode and a
# copy of the rest of the input.
_MOST_MEMBERS = 100

_GZIP = frozenset({"gzip", "x-gzip"})

# IANA's registry of content codings, without identity. Servers also send labels such as
# "UTF-8", "none" and "aws-chunked", which most clients ignore.
_REGISTERED = _GZIP | {
    *("aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi"),
    *("pack200-gzip", "x-compress", "zstd"),
}
_NO_CODING = frozenset({"", "identity"})

# The first line of a body whose chunks were not removed: their size, and perhaps a
# signature (aws-chunked).
_CHUNK_HEAD = re.compile(rb"\s*[0-9A-Fa-f]+[ \t]*(?:;|[\r\n]|$)")


@set_module("robotsgate.fetching")
class CodingError(ValueError):
    """A content coding that was not requested, or a corrupt or truncated body."""


def content_encoding_of(headers: HeadersLike) -> str:
    return ", ".join(header_values(headers, "content-encoding"))


def decoder_of(content_encoding: str) -> Inflate | None:
    """The decoder for a Content-Encoding; `None` if there is nothing to decode.

    Members that are not registered codings are ignored; see `file_in`.

    Raises:
        CodingError: a registered coding other than gzip and deflate, or several.
    """
    codings = [one for one in _members(content_encoding) if one in _REGISTERED]
    if not codings:
        return None
    if len(codings) == 1 and codings[0] in _GZIP:
        return Inflate(is_gzip=True)
    if codings == ["deflate"]:
        return Inflate(is_gzip=False)
    raise CodingError(
        f"expected the content coding gzip or deflate, got {content_encoding[:80]!r}"
    )


def file_in(body: bytes, content_encoding: str, *, max_bytes: int) -> bytes:
    """The robots.txt in the decoded `body` of a successful response.

    Some servers send a compressed file without saying so; text never begins like gzip,
    so one such layer is decompressed. If `content_encoding` has a member that is not a
    registered coding, the body may be encoded in an unknown way, so it must contain
    rules.

    Raises:
        CodingError: there is another layer, the layer is corrupt or truncated, or the
            body of an unregistered coding is not a robots.txt.
    """
    if body.startswith(_GZIP_MAGIC):
        content = bytearray()
        layer = Inflate(is_gzip=True)
        layer.decode(body, content, max_bytes)
        if len(content) < max_bytes:
            layer.finish()
        body = bytes(content)
        if body.startswith(_GZIP_MAGIC):
            raise CodingError("the body is compressed more than once")
    if not content_encoding or _REGISTERED.issuperset(_members(content_encoding)):
        return body
    if _CHUNK_HEAD.match(body) or not has_rules(body, max_bytes=max_bytes):
        raise CodingError(
            "expected a robots.txt despite the unknown content coding"
            f" {content_encoding[:80]!r}"
        )
    return body


def _members(content_encoding: str) -> list[str]:
    """The lower-case members of a Content-Encoding, without empty ones and identity."""
    members = [one.strip().lower() for one in content_encoding.split(",")]
    return [one for one in members if one not in _NO_CODING]


class Inflate:
    """Decodes multi-member gzip, and deflate with or without a zlib header.

    Call `decode` until `is_over` is true, then `finish`.

    Bytes after the end of the compressed data are ignored, as in all browsers.
    """

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._waiting = b""
        self._inflate: zlib._Decompress | None = None
        self._members = 0  # decoded to their end
        self.is_over = False

    def decode(self, chunk: bytes, decoded: bytearray, max_bytes: int) -> None:
        self._waiting += chunk
        while len(decoded) < max_bytes and not self.is_over:
            if self._inflate is None and not self._begin():
                return
            content = self._next_content(max_bytes - len(decoded))
            if not content and not self._waiting:
                return
            decoded += content

    def finish(self) -> None:
        """End the input; raise a CodingError if it is truncated."""
        is_started = self._waiting and not self._members
        if not self.is_over and (self._inflate is not None or is_started):
            raise CodingError("the compressed body is cut off")

    def _begin(self) -> bool:
        """Start a member if its first two bytes have arrived; return whether it did."""
        if len(self._waiting) < 2:  # noqa: PLR2004
            return False
        if self._members and self._waiting[:2] != _GZIP_MAGIC:
            self.is_over, self._waiting = True, b""
            return False
        if self._members == _MOST_MEMBERS:
            raise CodingError(f"more than {_MOST_MEMBERS} gzip members")
        window = _WINDOW_GZIP
        if not self._is_gzip:
            first, second = self._waiting[:2]
            is_zlib = first & 0x0F == zlib.DEFLATED and (first << 8 | second) % 31 == 0
            window = _WINDOW_ZLIB if is_zlib else _WINDOW_RAW
        self._inflate = zlib.decompressobj(window)
        return True

    def _next_content(self, max_bytes: int) -> bytes:
        inflate = self._inflate
        assert inflate is not None  # noqa: S101 (`decode` has begun)
        try:
            content = inflate.decompress(self._waiting, max_bytes)
        except zlib.error as error:
            raise CodingError(f"the compressed body is corrupt: {error}") from error
        self._waiting = inflate.unconsumed_tail
        if inflate.eof:
            self._inflate = None
            self.is_over = not self._is_gzip
            self._members += 1
            self._waiting = b"" if self.is_over else inflate.unused_data
        return content
