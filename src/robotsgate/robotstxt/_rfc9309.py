"""Reads a robots.txt as RFC 9309 says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Field
from robotsgate.robotstxt._octets import (
    as_octets,
    is_normalised,
    is_plain,
    normalised,
    without_dots,
)
from robotsgate.robotstxt._origin import split_url
from robotsgate.robotstxt._product_token import leading_token, product_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotsgate.robotstxt._dialect import Grammar

__all__ = ["RFC9309", "frequent_spellings", "normalised_target", "split_lines"]

_FIELDS = {field.value: field for field in Field if field is not Field.OTHER}


class _Rfc9309:
    """Fields by their whole names, a colon in each record, octets normalised."""

    white_space = " \t"
    implies_robots_txt = True

    def __init__(self) -> None:
        self.known_fields: Mapping[str, Field] = frequent_spellings()

    def without_byte_order_mark(self, body: bytes) -> bytes:
        return body.removeprefix(b"\xef\xbb\xbf")

    def lines(self, text: str) -> list[str]:
        return split_lines(text)

    def field(self, key: str) -> Field:
        return _FIELDS.get(key, Field.OTHER)

    def split_without_colon(self, line: str) -> None:  # noqa: ARG002
        return None

    def group_token(self, value: str) -> str:
        if value == "*" or value.startswith(("* ", "*\t")):
            return "*"
        return leading_token(value).lower()

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        return product_tokens(agent)

    def leaves_alone(self, values: str) -> bool:
        return "$" not in values and is_normalised(values)

    def patterns(self, value: str, *, is_allow: bool) -> tuple[str, ...]:  # noqa: ARG002
        end = "$" if value.endswith("$") else ""
        pattern = normalised(value[: len(value) - len(end)]).replace("$", "%24") + end
        return (value if pattern == value else pattern,)

    def target(self, url: object) -> str:
        text = str(url)
        if not text.startswith("/"):
            return normalised_target(split_url(url)[1])
        path, mark, rest = text.partition("#")[0].partition("?")
        return normalised_target(without_dots(path) + mark + rest)

    def target_of_path(self, path: str) -> str:
        return normalised_target(path)


def normalised_target(target: str) -> str:
    """Path and query in the one spelling that patterns are compared in.

    Args:
        target: begins with "/"; without fragment and without dot segments.
    """
    if is_plain(target):
        return target
    return normalised(as_octets(target)).replace("*", "%2A").replace("$", "%24")


def split_lines(text: str) -> list[str]:
    """The lines of `text`, ended by CR, LF or CRLF; nothing else ends a line."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def frequent_spellings() -> dict[str, Field]:
    """The fields as most files write them: Disallow, disallow, User-Agent, …."""
    return {
        spelling: field
        for name, field in _FIELDS.items()
        for spelling in (name, name.capitalize(), name.title(), name.upper())
    }


RFC9309: Grammar = _Rfc9309()
