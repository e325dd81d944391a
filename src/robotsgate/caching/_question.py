"""Validates the caller's arguments: agent, origin and path. Pure."""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Iterable
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.caching._policy import Policy
from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.urls._url import Origin, split_url, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._product_token import ProductToken
    from robotsgate.urls._url import URLLike

AgentName = str | tuple[str, ...]

# Callers use few agents. The limit contains the damage if a caller uses many.
_MAX_AGENTS = 1_000


class Agent(NamedTuple):
    """An agent as named by the caller, with its product tokens, most specific first.

    Its rules are cached under `name`; `names` contains only that and is shared by all
    origins.
    """

    name: AgentName
    tokens: tuple[ProductToken, ...]
    names: tuple[AgentName]

    @classmethod
    def of(cls, agent: str | Sequence[str]) -> Agent:
        if isinstance(agent, str):
            return _agent(agent)
        product_tokens(agent)  # raises unless it is a sequence of agents
        return _agent(tuple(agent))


class Question(NamedTuple):
    """One lookup: whether `agent` may fetch a target (path and query) at `origin`.

    The `readings` of the target are normalized as the grammar requires. The `url` is as
    passed by the caller; it may contain a password.
    """

    agent: Agent
    origin: Origin
    readings: tuple[str, ...]
    url: str | URLLike

    @classmethod
    def of(
        cls, agent: str | Sequence[str], url: str | URLLike, grammar: Grammar
    ) -> Question:
        known_agent = Agent.of(agent)
        origin, target = split_url(url)
        return cls(known_agent, origin, grammar.readings_of(target), url)


@lru_cache(maxsize=_MAX_AGENTS)
def _agent(name: AgentName) -> Agent:
    return Agent(name, product_tokens(name), (name,))


def check_bound(
    name: str, value: object, *, lowest: int = 1, highest: float = math.inf
) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected {name} to be an int, got {value!r}")
    if not lowest <= value <= highest:
        is_open = highest == math.inf
        expected = f"{lowest} or more" if is_open else f"from {lowest} to {highest}"
        raise ValueError(f"expected {name} to be {expected}, got {value!r}")


def check_callback(name: str, value: object) -> None:
    is_usable = callable(value) and not iscoroutinefunction(value)
    if not (value is None or is_usable):
        raise TypeError(f"expected {name} to be a sync callable, got {value!r}")


def check_policy(policy: object) -> None:
    if not isinstance(policy, Policy):
        raise TypeError(f"expected policy to be a Policy, got {policy!r}")


def check_urls(
    urls: object, *, agent: object = None, may_be_async: bool = False
) -> None:
    """Raise a TypeError if `urls` is a single URL, or not iterable.

    `agent` is the preceding argument, if there is one.
    """
    if isinstance(urls, str | bytes):
        shown = without_userinfo(str(urls))
        is_agent = agent is not None and "://" not in shown.partition(" ")[0]
        hint = ": are the arguments swapped?" if is_agent else ""
        raise TypeError(f"expected several URLs, got the single {shown!r}{hint}")
    expected = Iterable | AsyncIterable if may_be_async else Iterable
    if not isinstance(urls, expected):
        shown = without_userinfo(repr(urls))
        raise TypeError(f"expected an iterable of URLs, got {shown}")
