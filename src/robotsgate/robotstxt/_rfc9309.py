"""Reads a robots.txt as RFC 9309 says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Field
from robotsgate.robotstxt._octets import (
    is_plain,
    normalised_patterns,
    normalised_target,
    readable,
    wide_encoding,
)
from robotsgate.robotstxt._product_token import crawler_name, product_tokens
from robotsgate.urls._origin import split_url
from robotsgate.urls._path import without_dots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.urls._origin import URLLike

_FIELDS = {field.value: field for field in Field if field is not Field.OTHER}


class _Rfc9309:
    """Takes fields by their whole names, needs colons, and normalises escapes."""

    white_space = " \t"
    implies_robots_txt = True

    def __init__(self) -> None:
        self.known_fields: Mapping[str, Field] = frequent_spellings()

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its mark, and in UTF-8 if the mark names another encoding."""
        encoding = wide_encoding(body)
        if encoding is not None:
            body = body.decode(encoding, "replace").encode()
        return body.removeprefix(b"\xef\xbb\xbf")

    def counted_text(self, text: str) -> str:
        return text

    def field(self, key: str) -> Field:
        return _FIELDS.get(key, Field.OTHER)

    def split_without_colon(self, line: str) -> None:  # noqa: ARG002
        return None

    def group_token(self, value: str) -> str:
        if value.isalnum() and value.isascii():
            return value.lower()
        if value == "*" or value.startswith(("* ", "*\t")):
            return "*"
        return crawler_name(readable(value))

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        return product_tokens(agent)

    def spelling(self, values: str) -> str:
        if "$" not in values:
            return normalised_patterns(values)
        ends_marked = f"{values}\n".replace("$\n", "\r\n")
        spelt = normalised_patterns(ends_marked).replace("$", "%24")
        return spelt.replace("\r\n", "$\n")[:-1]

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:  # noqa: ARG002
        return []

    def target(self, url: str | URLLike) -> str:
        text = str(url)
        if not text.startswith("/"):
            return normalised_target(split_url(url)[1])
        if is_plain(text):
            return text
        path, mark, rest = text.partition("#")[0].partition("?")
        return normalised_target(without_dots(path) + mark + rest)

    def target_of_path(self, path: str) -> str:
        return normalised_target(path)


def frequent_spellings() -> dict[str, Field]:
    """The fields as most files write them: Disallow, disallow, User-Agent, …."""
    return {
        spelling: field
        for name, field in _FIELDS.items()
        for spelling in (name, name.capitalize(), name.title(), name.upper())
    }


RFC9309: Grammar = _Rfc9309()
