"""Names the two dialects of robots.txt, and what each must decide."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotsgate.urls._origin import URLLike


class Dialect(enum.Enum):
    """The way to read a robots.txt."""

    RFC9309 = "rfc9309"
    """The standard, with product tokens that may hold digits and dots."""

    GOOGLE = "google"
    """Google's published parser to the letter; it accepts some misspelt fields."""


class Field(enum.Enum):
    """What a line is about."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    OTHER = "other"


class Grammar(Protocol):
    """Everything in which the dialects differ; the parser knows none by name."""

    white_space: str
    """The characters that may stand around a field and a value."""

    known_fields: Mapping[str, Field]
    """Frequent spellings, exactly as files write them: quicker than `field`."""

    implies_robots_txt: bool
    """Whether /robots.txt itself is always allowed (RFC 9309 §2.2.2)."""

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its byte order mark; a dialect may change it to UTF-8."""
        ...

    def counted_text(self, text: str) -> str:
        """`text` with each line cut to the part that counts; lines end with LF."""
        ...

    def field(self, key: str) -> Field:
        """What the lower-case `key` means."""
        ...

    def split_without_colon(self, line: str) -> tuple[str, str] | None:
        """Key and value of a line without a colon; `None` if it is not a record."""
        ...

    def group_token(self, value: str) -> str:
        """The lower-case token of a user-agent line; "*" for any; may be empty."""
        ...

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        """The lower-case tokens to look for, most specific first."""
        ...

    def spelling(self, values: str) -> str:
        """The patterns `values`, joined by LF, in the spelling of `target`."""
        ...

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:
        """Further patterns that allow rules stand for: (index of the rule, pattern)."""
        ...

    def target(self, url: str | URLLike) -> str:
        """The path and query of `url`, from "/" on, as patterns are matched with it."""
        ...

    def target_of_path(self, path: str) -> str:
        """As `target`, for the path and query that `split_url` gives."""
        ...
