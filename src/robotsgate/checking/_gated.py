"""Gives a politeness gate what it needs of a checker: the seam between the two.

A gate asks for one agent, waits for the turn of a host however long that takes, and
lets the checker's own fetches wait for their turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast

from robotsgate.caching._verdict import DisallowedError
from robotsgate.checking._question import Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import anyio

    from robotsgate.checking._origins import Origins
    from robotsgate.checking._question import Agent
    from robotsgate.checking._standing import Standing, StandingFor
    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.urls._origin import Origin, URLLike


RenewalResult = tuple["Standing", bool]
"""How an origin stands, and whether this renewal fetched it."""


class FetchTurns(Protocol):
    """Lets each fetch wait for the turn of its host, as a politeness gate does."""

    async def in_turn(
        self,
        origin: Origin,
        fetch: Callable[[], Awaitable[RenewalResult]],
        *,
        patience: float,
    ) -> RenewalResult:
        """Call `fetch` when the turn of its host has come; what it returns.

        Raises:
            TurnNotInTimeError: the turn does not come within `patience`, seconds.
        """
        ...

    def ready_at(self, origin: Origin) -> float:
        """A lower bound of when a fetch may begin, epoch seconds."""
        ...


class Leave(NamedTuple):
    """The permission to fetch a URL.

    Attributes:
        origin: the key of the origin.
        rules: what is in force for the agent there.
    """

    origin: str
    rules: StandingFor


class GatedOrigins:
    """The origins of a checker, for one gate.

    Attributes:
        clock: that of the checker.
        policy: that of the checker.
        sources: the sources of URLs that are being read ahead.
    """

    def __init__(
        self,
        origins: Origins,
        agent: Agent,
        *,
        quick_answer: Callable[[str | Sequence[str], str | URLLike], bool | None],
        grammar: Grammar,
    ) -> None:
        """Ask `origins`; `open` follows.

        Args:
            origins: those of the checker.
            agent: the one that asks.
            quick_answer: that of the checker; it gives `None` if it has no answer.
            grammar: gives the spelling of targets.
        """
        self._agent = agent
        self._turns: FetchTurns | None = None
        self._origins = origins
        self._live = origins.live
        self._quick_answer = quick_answer
        self._grammar = grammar
        self.policy = origins.policy
        self.clock = origins.clock
        self.sources = origins.sources

    def open(self, turns: FetchTurns) -> None:
        """Let all fetches wait for `turns` from now on.

        Raises:
            RuntimeError: the checker is closed, or has an open gate already.
        """
        renewals = self._origins.renewals
        renewals.flights.check_open()
        if renewals.turns is not None:
            raise RuntimeError("expected one open gate for each checker, got another")
        self._turns = renewals.turns = turns

    def close(self) -> None:
        """Let fetches no longer wait for turns."""
        if self._origins.renewals.turns is self._turns:
            self._origins.renewals.turns = None

    def question(self, url: str | URLLike) -> Question:
        """The question whether the agent may fetch `url`.

        Raises:
            InvalidURLError: `url` names no origin.
        """
        return Question.of(self._agent.name, url, self._grammar)

    def leave_at_once(self, url: str | URLLike) -> Leave | Literal[False] | None:
        """Leave to fetch `url`, if memory has the answer and finding it is quick.

        `False` if the agent may not; `None` if memory has no quick answer.
        """
        name = self._agent.name
        answer = self._quick_answer(name, url)
        if not answer:
            return answer
        text = cast("str", url)  # for anything else there is no quick answer
        key = text[: text.index("/", 8)]
        if self._live.by_origin[key].entry.is_put_off:
            return None
        return Leave(key, self._live.by_agent[name][key])

    def last_leave(self, origin: str) -> Leave | None:
        """The leave for the origin with this key that memory holds, even if too old."""
        rules = self._live.by_agent.get(self._agent.name, {}).get(origin)
        return None if rules is None else Leave(origin, rules)

    async def leave(
        self,
        question: Question,
        *,
        wait: Callable[[anyio.Event], Awaitable[object]] | None,
        is_counted: bool,
    ) -> Leave:
        """Leave to fetch the URL of `question`; its robots.txt is fetched if need be.

        Args:
            question: the one that the method `question` made.
            wait: returns when the event is set, or when the caller stops waiting;
                `None` if it does not wait at all. The fetch goes on without it.
            is_counted: whether `leave_at_once` has just counted a refusal.

        Raises:
            DisallowedError: the agent may not fetch it.
            TimeoutError: the fetch takes longer than the caller waits.
            RuntimeError: the checker is closed before that is known.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        standing = await self._standing(question.origin, wait)
        rules = await self._origins.standing_for(standing, self._agent)
        verdict = await self._origins.explain(
            standing, rules, question, is_counted=is_counted
        )
        if not verdict.allowed:
            raise DisallowedError(verdict)
        return Leave(str(question.origin), rules)

    def is_in_force(self, leave: Leave) -> bool:
        """Whether `leave` still holds."""
        standing = self._live.by_origin.get(leave.origin)
        rules = leave.rules
        is_replaced = standing is not None and standing.usable_from > rules.usable_from
        return not is_replaced and self.clock.now() < rules.usable_until

    def get_ready(self, origin: Origin) -> None:
        """Begin to fetch the robots.txt of `origin` if need be; do not wait for it.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        self._origins.get_ready(origin)

    async def _standing(
        self,
        origin: Origin,
        wait: Callable[[anyio.Event], Awaitable[object]] | None,
    ) -> Standing:
        """How `origin` stands, however late the turn of its host comes."""
        self._origins.check_usable(origin)
        standing = self._live.current(str(origin), self.clock.now())
        if standing is not None and not standing.entry.is_put_off:
            return standing
        if wait is None:
            self._origins.renewals.begin(origin)
            raise TimeoutError
        return await self._origins.renewals.renew_in_turn(origin, wait=wait)
