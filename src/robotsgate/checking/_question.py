"""Parses a question of a caller: which agent, which origin, which path."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.urls._origin import Origin, split_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._product_token import ProductToken
    from robotsgate.urls._origin import URLLike

AgentName = str | tuple[str, ...]

# The agents are those of the caller, and few. The bound limits the harm of a mistake.
_MAX_AGENTS = 1_000


class Agent(NamedTuple):
    """An agent as a caller names it.

    Attributes:
        name: the key under which its rules are held.
        tokens: its product tokens, most specific first.
        names: a tuple of its name alone, which all origins share.
    """

    name: AgentName
    tokens: tuple[ProductToken, ...]
    names: tuple[AgentName]

    @classmethod
    def of(cls, agent: str | Sequence[str]) -> Agent:
        """The agent that a caller means.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
        """
        if isinstance(agent, str):
            return _agent(agent)
        product_tokens(agent)  # refuses what is not a sequence of agents
        return _agent(tuple(agent))


class Question(NamedTuple):
    """May `agent` fetch `target` at `origin`?

    Attributes:
        agent: the one that asks.
        origin: the one that it asks about.
        target: path and query, in the spelling of the grammar.
        url: as the caller gave it; it may hold a password.
    """

    agent: Agent
    origin: Origin
    target: str
    url: str | URLLike

    @classmethod
    def of(
        cls, agent: str | Sequence[str], url: str | URLLike, grammar: Grammar
    ) -> Question:
        """The question that a caller asks.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            InvalidURLError: `url` names no origin.
        """
        known_agent = Agent.of(agent)
        origin, path = split_url(url)
        return cls(known_agent, origin, grammar.target_of_path(path), url)


@lru_cache(maxsize=_MAX_AGENTS)
def _agent(name: AgentName) -> Agent:
    return Agent(name, product_tokens(name), (name,))
