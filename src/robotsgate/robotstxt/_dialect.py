"""Names the two ways to read a robots.txt, and what each must decide."""

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
    """Google's published parser to the letter, spelling mistakes included."""


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
    """What may stand around a field and a value."""

    known_fields: Mapping[str, Field]
    """Frequent spellings, exactly as files write them: a short cut for `field`."""

    implies_robots_txt: bool
    """Whether /robots.txt itself is always allowed (RFC 9309 §2.2.2)."""

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` in UTF-8, from its first character on."""
        ...

    def counted(self, text: str) -> str:
        """`text`, whose lines end with LF, as far as each line counts."""
        ...

    def field(self, key: str) -> Field:
        """What the lower-case `key` means."""
        ...

    def split_without_colon(self, line: str) -> tuple[str, str] | None:
        """Key and value of a line that has no colon; `None` where it is void."""
        ...

    def group_token(self, value: str) -> str:
        """The lower-case token of a user-agent line; "*" for any; may be empty."""
        ...

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        """The lower-case tokens to look for, most specific first."""
        ...

    def spelt(self, values: str) -> str:
        """The patterns `values`, joined by LF, in the spelling of `target`."""
        ...

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:
        """What allow rules stand for besides: (place of its rule, pattern)."""
        ...

    def target(self, url: str | URLLike) -> str:
        """What patterns are matched against: path and query, from "/" on."""
        ...

    def target_of_path(self, path: str) -> str:
        """As `target`, for the path and query that `split_url` gives."""
        ...
