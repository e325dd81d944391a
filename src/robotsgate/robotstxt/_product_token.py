"""Reduces what a caller calls its agent to product tokens (RFC 9309 §2.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NewType

from robotsgate.errors import InvalidProductTokenError
from robotsgate.urls._origin import without_userinfo

ProductToken = NewType("ProductToken", str)
"""A lower-case product token, or "*" for "any agent"."""

# RFC 9309 allows letters, "_" and "-". Real files also name agents with digits
# and dots (MJ12bot, 008, sitecheck.internetseer.com), in 3 % of their
# user-agent lines; cut short, those would match the wrong agents or none.
_TOKEN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"


# Agents are the caller's own, and few.
_KNOWN_AGENTS = 256


def product_tokens(agent: str | Sequence[str]) -> tuple[ProductToken, ...]:
    """The product tokens of `agent`, most specific first.

    Args:
        agent: a product token ("ExampleBot"), a whole User-Agent header (its
            first product counts; a browser-like "Mozilla/5.0 (compatible;
            ExampleBot/1.0; …)" gives ExampleBot), "*", or a sequence of those,
            most specific first.

    Returns:
        One token or more, in lower case; tokens compare case-insensitively.

    Raises:
        InvalidProductTokenError: no token can be found, the sequence is empty,
            or the agent looks like a URL.
    """
    if isinstance(agent, str):
        return _one_token(agent)
    given: object = agent
    if not isinstance(given, Sequence) or isinstance(given, bytes) or not given:
        raise InvalidProductTokenError(
            f"expected a product token or a sequence of them, got {agent!r}",
            agent=agent,
        )
    return tuple(_product_token(one) for one in given)


def leading_token(text: str, alphabet: str = _TOKEN_CHARACTERS) -> str:
    """The longest start of `text` that is made of token characters; may be empty."""
    return text[: len(text) - len(text.lstrip(alphabet))]


@lru_cache(maxsize=_KNOWN_AGENTS)
def _one_token(agent: str) -> tuple[ProductToken]:
    return (_product_token(agent),)


def _product_token(agent: object) -> ProductToken:
    if not isinstance(agent, str):
        raise InvalidProductTokenError(
            f"expected a product token as str, got {agent!r}", agent=agent
        )
    text = agent.strip()
    if text == "*":
        return ProductToken("*")
    first_product = text.partition("(")[0].partition(" ")[0]
    if "://" in first_product:
        shown = without_userinfo(agent)
        raise InvalidProductTokenError(
            f"expected a product token, got {shown!r}: arguments swapped?", agent=agent
        )
    token = leading_token(_after_compatible(text))
    if not token:
        raise InvalidProductTokenError(
            f"expected a product token such as 'ExampleBot', got {agent!r}", agent=agent
        )
    return ProductToken(token.lower())


def _after_compatible(header: str) -> str:
    """`header` from the product that a browser-like header is really about."""
    if not header.lower().startswith("mozilla/"):
        return header
    behind = header.partition("compatible;")[2].lstrip()
    return behind if leading_token(behind) else header
