"""Whether a new response has changed an origin's rules. Pure.

Rules are the allow and disallow lines for an agent, its crawl-delay and its request
rate. Sitemaps and usage preferences are not rules. If there is no file, there are no
rules; a response that is REFUSED or RESTRICTED cannot be compared.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from robotsgate.caching._outcome import AccessResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robotsgate.caching._entry import Answer
    from robotsgate.robotstxt._agent_rules import AgentRules
    from robotsgate.robotstxt._robots_txt import RobotsTxt

Digests = dict[str, str]
"""The digests of the rules, by product token; "*" is for all other agents."""

_WITH_RULES = {AccessResult.SUCCESSFUL, AccessResult.UNAVAILABLE}

_NO_RULES = ""

_DIGITS = 32


def may_change_rules(before: Answer, after: Answer) -> bool:
    """Whether the rules of both answers are known and their files differ."""
    is_known = {before.access, after.access} <= _WITH_RULES
    return is_known and before.packed != after.packed


def rules_change(
    before: Answer, after: Answer, read: Callable[[bytes], RobotsTxt]
) -> tuple[Digests, Digests] | None:
    """The digests of both answers, parsed by `read`.

    `None` if they are equal, or if computing them would take too long.
    """
    old, new = _digests_of(before, read), _digests_of(after, read)
    return None if old is None or new is None or old == new else (old, new)


def _digests_of(answer: Answer, read: Callable[[bytes], RobotsTxt]) -> Digests | None:
    """The digests of the file in `answer`, parsed by `read`; empty if there is no file.

    Equal digests mean equal rules, regardless of order and spelling. Groups that have
    no effect are omitted: a "*" group without rules, and other groups with the same
    rules as "*".

    Returns:
        `None` if computing them would take too long.
    """
    if answer.packed is None:
        return {}
    agents = read(answer.packed.body).rules_of_each_token()
    if agents is None:
        return None
    digests = {}
    for rules, sharing in groupby(agents, key=attrgetter("rules")):
        lines = _digest(sorted(set(rules.effective())))
        for agent in sharing:
            digests[str(agent.group)] = _digest([lines, *_delays(agent)])
    fallback = digests.pop("*", _NO_RULES)
    digests = {token: one for token, one in digests.items() if one != fallback}
    return digests | ({"*": fallback} if fallback else {})


def _delays(agent: AgentRules) -> Iterator[str]:
    if agent.crawl_delay is not None:
        yield f"crawl-delay: {agent.crawl_delay}"
    rate = agent.request_rate
    if rate is not None:
        yield f"request-rate: {rate.requests}/{rate.seconds}"


def _digest(parts: list[str]) -> str:
    text = "\n".join(filter(None, parts))
    return sha256(text.encode()).hexdigest()[:_DIGITS] if text else _NO_RULES
