"""The current in-memory state of an origin, in general and for one agent.

No network and no clock: the time is an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.caching._in_force import Effect, explain, in_force
from robotsgate.caching._verdict import Reason
from robotsgate.robotstxt._matcher import RuleLines, RuleSet
from robotsgate.robotstxt._robots_txt import AgentRules
from robotsgate.urls._url import decisive, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate.caching._entry import Entry, PackedBody
    from robotsgate.caching._policy import Policy
    from robotsgate.caching._question import AgentName, Question
    from robotsgate.caching._verdict import Verdict
    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._usage_preferences import UsagePreferences

# 98 % of real files are smaller. Parsing the worst file of this size takes up to 30 ms.
MAX_BYTES_AT_ONCE = 65_536

# The worst Content-Usage dictionaries take a microsecond per character.
_MAX_USAGE_CHARACTERS_AT_ONCE = 4_096

_EVERYTHING = RuleLines(["/"], [0], ["/"])
_FULL_ALLOW = AgentRules(group=None, rules=RuleSet())
_FULL_DISALLOW = AgentRules(group=None, rules=RuleSet(_EVERYTHING))
_REFUSAL = AgentRules(group=None, rules=RuleSet(_EVERYTHING, implied=None))

RULES_WITHOUT_FILE = {
    Effect.ALLOW: _FULL_ALLOW,
    Effect.DISALLOW: _FULL_DISALLOW,
    Effect.REFUSE: _REFUSAL,
}
"""The rules for all agents if there is no file."""


class Standing:
    """The current in-memory state of an origin.

    Attributes:
        entry: the origin's entry.
        effect: what applies from `usable_from` until `usable_until`.
        refusal: the reason if a URL is disallowed, as the value of a `Reason`, because
            values are counted three times as fast as members.
        usable_from: epoch seconds.
        usable_until: epoch seconds; from then on, `in_force` must decide again.
        agents: the agents that have been looked up.
        weight: the approximate size of the body and the rules, in bytes.
        is_used: whether the origin has been looked up since `LiveOrigins` last
            considered evicting it; each `StandingFor` has its own flag.
    """

    __slots__ = (
        "_body",
        "agents",
        "effect",
        "entry",
        "is_used",
        "refusal",
        "usable_from",
        "usable_until",
        "weight",
    )

    def __init__(
        self, entry: Entry, *, now: float, policy: Policy, new_body: bytes | None = None
    ) -> None:
        """Decide what applies according to `entry`, which must be current at `now`.

        `new_body` is the entry's body if it has just been fetched, so that the first
        lookup does not have to decompress it.
        """
        standing = in_force(entry, now=now, policy=policy)
        self.entry: Entry = entry
        self.effect: Effect = standing.effect
        self.refusal: str = (standing.reason or Reason.DISALLOWED_BY_RULE).value
        self.usable_from: float = now
        self.usable_until: float = standing.until
        self.agents: tuple[AgentName, ...] = ()
        self.weight: int = self.weight_of_body
        self.is_used: bool = False
        is_small = new_body is not None and len(new_body) <= MAX_BYTES_AT_ONCE
        self._body = new_body if is_small else None

    @property
    def weight_of_body(self) -> int:
        """The approximate size of the compressed body, in bytes."""
        answer = self.entry.answer
        return 0 if answer is None or answer.packed is None else len(answer.packed)

    def is_usable(self, now: float) -> bool:
        """Whether this state is valid at `now`."""
        return self.usable_from <= now < self.usable_until

    @property
    def body_at_once(self) -> bytes | None:
        """The file that applies, if it is small; otherwise `None`.

        Empty if no file applies. The file is cached until `forget_body` is called.
        """
        packed = self._packed_file
        if packed is None:
            return b""
        if self._body is None:
            self._body = packed.body_within(MAX_BYTES_AT_ONCE)
        return self._body

    @property
    def body(self) -> bytes:
        """The file that applies, decompressed; empty if there is none."""
        return b"" if self._packed_file is None else self._packed_file.body

    @property
    def _packed_file(self) -> PackedBody | None:
        answer = self.entry.answer
        has_file = answer is not None and self.effect is Effect.RULES
        return answer.packed if answer is not None and has_file else None

    def forget_body(self) -> None:
        """Drop the decompressed file, which is rarely needed again."""
        self._body = None


class StandingFor:
    """What applies to one agent at one origin: everything a quick lookup needs.

    It refers to few objects, because each object costs a cache miss when lookups jump
    between origins.

    Attributes:
        usable_from: epoch seconds, as in `Standing`.
        usable_until: epoch seconds, as in `Standing`.
        is_used: the flag for this agent, as in `Standing`.
        refusal: as in `Standing`.
        rules: the rules in `agent_rules`.
        agent_rules: the file's rules for the agent, or the rules that apply without a
            file.
    """

    __slots__ = (
        "agent_rules",
        "is_used",
        "refusal",
        "rules",
        "usable_from",
        "usable_until",
    )

    def __init__(self, standing: Standing, agent_rules: AgentRules) -> None:
        """Combine `agent_rules` with the state of their origin in `standing`."""
        self.usable_from: float = standing.usable_from
        self.usable_until: float = standing.usable_until
        self.is_used: bool = False
        self.refusal: str = standing.refusal
        self.rules: RuleSet = agent_rules.rules
        self.agent_rules: AgentRules = agent_rules

    def allows_at_once(self, readings: Sequence[str]) -> bool | None:
        """Whether a target may be fetched in every one of its `readings`.

        `None` if the answer would take a long time to determine.
        """
        if len(readings) > 1 and not self.explains_at_once(readings):
            return None
        for target in readings:
            answer = self.rules.allows_at_once(target)
            if not answer:
                return answer
        return True

    def allows(self, readings: Iterable[str]) -> bool:
        """Like `allows_at_once`, but always decides, however long it takes."""
        return all(map(self.rules.allows, readings))

    def explain(
        self, standing: Standing, question: Question, *, policy: Policy
    ) -> Verdict:
        """The full verdict for `question`.

        If a target has several readings, the first disallowed reading is used.
        """
        match = self.agent_rules.match(decisive(question.readings, self.rules.allows))
        was_in_force = in_force(standing.entry, now=self.usable_from, policy=policy)
        return explain(
            standing.entry,
            was_in_force,
            match,
            url=shown_url(question.url),
            agent=question.agent.name,
        )

    def refusal_of(self, readings: Sequence[str]) -> str:
        """Why a target with these `readings` is disallowed, for the log."""
        if self.agent_rules.group is None or not self.explains_at_once(readings):
            return self.refusal
        rule = self.agent_rules.match(decisive(readings, self.rules.allows)).rule
        return f"{self.refusal}, {str(rule)!r} on line {rule and rule.line}"

    def explains_at_once(self, readings: Iterable[str]) -> bool:
        """Whether `explain` takes at most a few milliseconds."""
        return sum(map(len, readings)) <= self.rules.quick_length

    def usage_preferences(
        self, readings: Sequence[str], grammar: Grammar, headers: HeadersLike | None
    ) -> UsagePreferences:
        """The usage preferences for a target, however long they take to determine.

        Raises:
            TypeError: `headers` does not consist of pairs of str.
        """
        from robotsgate.robotstxt._usage_preferences import (  # noqa: PLC0415 (slow to import)
            usage_preferences,
        )

        return usage_preferences(
            self.agent_rules.usage_lines,
            readings,
            grammar,
            allowed=self.allows(readings),
            headers=headers,
        )

    def tells_usage_at_once(self, readings: Iterable[str]) -> bool:
        """Whether `usage_preferences` takes at most a few milliseconds."""
        values = (value for _, value, _ in self.agent_rules.usage_lines)
        is_quick = sum(map(len, values)) <= _MAX_USAGE_CHARACTERS_AT_ONCE
        return is_quick and self.explains_at_once(readings)
