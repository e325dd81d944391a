"""Whether a new response has changed the rules of an origin. Pure.

Rules are the allow and disallow lines for an agent, its crawl-delay and its request
rate. Sitemaps and usage preferences are not rules. If there is no file, there are no
rules; a response that is REFUSED or RESTRICTED cannot be compared.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from robotsgate.caching._outcome import AccessResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._entry import Answer
    from robotsgate.robotstxt._agent_rules import AgentRules
    from robotsgate.robotstxt._robots_txt import RobotsTxt

Digests = dict[str, str]
"""The digests of the rules, by product token; "*" is for all other agents."""

_WITH_RULES = {AccessResult.SUCCESSFUL, AccessResult.UNAVAILABLE}

_NO_RULES = ""

_DIGITS = 32


def may_change_rules(before: Answer, after: Answer) -> bool:
    """Whether the rules of both answers are known, and their files differ."""
    is_known = {before.access, after.access} <= _WITH_RULES
    return is_known and before.packed != after.packed


def rules_change(
    before: Answer, after: Answer, read: Callable[[bytes], RobotsTxt]
) -> tuple[Digests, Digests] | None:
    """The digests of both answers, parsed by `read`; `None` if they are equal."""
    old, new = _digests_of(before, read), _digests_of(after, read)
    return None if old == new else (old, new)


def _digests_of(answer: Answer, read: Callable[[bytes], RobotsTxt]) -> Digests:
    """The digests of the file in `answer`, parsed by `read`; empty if there is no file.

    Equal digests mean equal rules, regardless of order and spelling. Groups that have
    no effect are omitted: a "*" group without rules, and other groups with the same
    rules as "*".
    """
    if answer.packed is None:
        return {}
    known: dict[tuple[object, ...], str] = {}
    digests = {}
    for rules in read(answer.packed.body).rules_of_each_token():
        # Any number of agents may share the rules of one group.
        key = rules.rules, rules.crawl_delay, rules.request_rate
        if key not in known:
            known[key] = _digest(rules)
        digests[str(rules.group)] = known[key]
    fallback = digests.pop("*", _NO_RULES)
    digests = {token: one for token, one in digests.items() if one != fallback}
    return digests | ({"*": fallback} if fallback else {})


def _digest(rules: AgentRules) -> str:
    parts = sorted(set(rules.rules.effective()))
    if rules.crawl_delay is not None:
        parts.append(f"crawl-delay: {rules.crawl_delay}")
    rate = rules.request_rate
    if rate is not None:
        parts.append(f"request-rate: {rate.requests}/{rate.seconds}")
    if not parts:
        return _NO_RULES
    return sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]
