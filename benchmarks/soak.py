"""A soak: many questions about many origins, of which a fifth is never well.

    python -m benchmarks.soak --loop asyncio --page docs/explanation/soak.md
    python -m benchmarks.soak --loop trio --page docs/explanation/soak.md

Promises that no answer is wrong, that memory is flat after the warm-up, and that
file descriptors, tasks and threads are back at the start; exits with 1 if not. The
servers have a process of their own, so that what is measured is the checker's.
Linux only, which has all of 127.0.0.0/8 and tells what a process holds.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from benchmarks import report
from benchmarks._soak_script import (
    AGENTS,
    KINDS,
    ROUND_DAYS,
    SOUND,
    Comes,
    Script,
    Standing,
    allows,
    paths,
)
from benchmarks._soak_servers import NETWORK, Servers
from benchmarks._soak_surroundings import BadListener, BadStore
from benchmarks.page import rewritten
from benchmarks.report import Bar, Table, bars_table, plain_text
from benchmarks.run import Run
from benchmarks.surroundings import surroundings
from robotsgate import AccessResult, Policy, RobotsChecker, RobotsTxtFetched
from robotsgate.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from benchmarks.report import Cell
    from robotsgate import CheckerEvent

__all__ = [
    "WARM_UP_ROUNDS",
    "Found",
    "Held",
    "Question",
    "Round",
    "Soak",
    "bars",
    "exit_status",
    "main",
    "run_of",
    "soaked",
]

WARM_UP_ROUNDS = 3
"""After so many rounds, memory is flat."""

_MOST_GROWTH_MIB = 8

_GIVES_UP = 0.03
_LONGEST_PATIENCE_SECONDS = 0.1
_STORE_FAILS = 0.02
_STORE_TIMEOUT = 0.2
_LISTENER_RAISES = 0.01

# In each round the clock goes on so often, and by so much each time: short
# lifetimes end and retries come due, and no outage is a day older.
_STEPS = 20
_STEP_SECONDS = 120.0
_DAY = 24 * 60 * 60.0

_LONGEST_CROWD = 8
_MOST_REPORTED = 20

_SETTLING_SECONDS = 5.0
# The threads of trio end when they had nothing to do for ten seconds.
_SETTLING_SECONDS_OF_THREADS = 15.0
_POLL_SECONDS = 0.02

_STATM = Path("/proc/self/statm")
_DESCRIPTORS = Path("/proc/self/fd")
_MIB = 2**20

_EXPECTED = {
    Comes.TO_RULES: AccessResult.SUCCESSFUL,
    Comes.TO_NO_FILE: AccessResult.UNAVAILABLE,
    Comes.TO_NOTHING: AccessResult.UNREACHABLE,
    Comes.TO_A_REFUSAL: AccessResult.UNREACHABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """How much is asked of how many.

    Attributes:
        origins: how many there are, > 0.
        checks: how many questions are asked in all rounds together, ≥ `rounds`.
        concurrency: how many questions wait at once at most, > 0.
        faults: the share of origins that is not well, 0 to 1.
        seed: from which origins and questions are drawn.
        loop: "asyncio" or "trio".
        rounds: in each, every origin does something else.
        deadline: of a fetch, seconds; long enough for the redirects of an origin
            that is well, on a machine that does a hundred fetches at once.
        silence: after which a fetch is given up, seconds.
    """

    origins: int = 2_000
    checks: int = 100_000
    concurrency: int = 500
    faults: float = 0.2
    seed: int = 0
    loop: str = "asyncio"
    rounds: int = 10
    deadline: float = 20.0
    silence: float = 3.0

    @property
    def script(self) -> Script:
        """What the origins do."""
        return Script(seed=self.seed, origins=self.origins, faults=self.faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, and the answer that it should get.

    Attributes:
        round_: in which it is asked, 0 for the first.
        origin: its number.
        agent: who asks.
        path: what is asked about.
        expected: the answer.
        ask: how it is asked.
        patience: seconds until who asks gives up; `None`: never.
    """

    round_: int
    origin: int
    agent: str
    path: str
    expected: bool
    ask: Callable[[RobotsChecker, str, str], Awaitable[bool]]
    patience: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the process holds of the system.

    Attributes:
        resident: bytes in memory.
        descriptors: files and sockets that are open.
        tasks: of the event loop; 1 where there is no loop.
        threads: those of Python.
    """

    resident: int
    descriptors: int
    tasks: int
    threads: int

    @classmethod
    def now(cls, *, tasks: int = 1) -> Held:
        """What is held now, once all garbage is collected."""
        gc.collect()
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
        return cls(
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            descriptors=sum(1 for _ in _DESCRIPTORS.iterdir()),
            tasks=tasks,
            threads=threading.active_count(),
        )

    def is_within(self, other: Held) -> bool:
        """Whether no more files are open and no more tasks run than in `other`."""
        return self.descriptors <= other.descriptors and self.tasks <= other.tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round came to.

    Attributes:
        seconds: by the clock on the wall.
        asked: questions.
        fetches: attempts to get a robots.txt.
        joined: questions that waited for the attempt of another.
        held: at its end.
    """

    seconds: float
    asked: int
    fetches: int
    joined: int
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a soak came to.

    Attributes:
        start: what was held before.
        end: what is held afterwards.
        rounds: one or more.
        counts: how often things happened, by the names of `CheckerStats` and
            "asked", "given up", "asked again", "wrong", "odd fetches", "knocks".
        attempts: how often origins of each kind were asked for their robots.txt.
        reports: sentences about what was wrong, the first ones.
    """

    start: Held
    end: Held
    rounds: tuple[Round, ...]
    counts: Counter[str]
    attempts: Counter[str]
    reports: tuple[str, ...]


def main(words: Sequence[str] | None = None) -> int:
    """Do as the command line says.

    Returns:
        The exit status: 1 if a promise was broken.
    """
    given = _arguments().parse_args(words)
    soak = Soak(**{name: getattr(given, name) for name in _OPTIONS})
    logging.getLogger("robotsgate").addHandler(logging.NullHandler())
    about = _about(soak)
    print("\n".join(f"{what}: {which}" for what, which in about.items()))
    found = soaked(soak)
    run = run_of(soak, found, about)
    for table in (*run.tables, bars_table(run.bars)):
        print("\n" + plain_text(table))
    for text in found.reports:
        print(f"wrong, with the seed {soak.seed}: {text}", file=sys.stderr)
    if given.json is not None:
        given.json.write_text(run.as_json(), encoding="utf-8")
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        parts = run.parts(prefix=f"{soak.loop} ")
        given.page.write_text(rewritten(page, parts), encoding="utf-8")
    return exit_status(run)


def exit_status(run: Run) -> int:
    """1 if a promise was broken, 0 otherwise."""
    return int(any(bar.standing is report.Standing.MISSED for bar in run.bars))


def soaked(soak: Soak, *, expected: Callable[..., bool] = allows) -> Found:
    """What `soak` comes to.

    Args:
        soak: how much is asked of how many.
        expected: the answer to a question; takes the same as `allows`.
    """
    with Servers(soak.script) as servers:
        threads = threading.active_count()
        soaking = _Soaking(soak, servers, expected)
        anyio.run(soaking.run, backend=soak.loop)
        until = perf_counter() + _SETTLING_SECONDS_OF_THREADS
        while threading.active_count() > threads and perf_counter() < until:
            time.sleep(_POLL_SECONDS)
        return soaking.found(
            threads_before=threads, threads_after=threading.active_count()
        )


# --- asking ---------------------------------------------------------------------


@dataclass(slots=True)
class _Tally:
    """What is counted while questions are asked."""

    counts: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    reports: list[str] = field(default_factory=list)

    def report(self, what: str, text: str) -> None:
        self.counts[what] += 1
        if len(self.reports) < _MOST_REPORTED:
            self.reports.append(text)


class _Soaking:
    """A soak that goes on."""

    def __init__(
        self, soak: Soak, servers: Servers, expected: Callable[..., bool]
    ) -> None:
        self._soak = soak
        self._servers = servers
        self._expected = expected
        self._script = soak.script
        self._standings = [
            self._script.standings(origin, soak.rounds)
            for origin in range(soak.origins)
        ]
        self._numbers = {url: number for number, url in enumerate(servers.origins)}
        self._clock = ManualClock()
        self._chance = Random(f"surroundings {soak.seed}")
        self._tally = _Tally()
        self._round = 0
        self._unanswered: set[int] = set()
        self._rounds: list[Round] = []
        self._held: list[Held] = []

    def found(self, *, threads_before: int, threads_after: int) -> Found:
        """What it came to; the threads are those outside the event loop."""
        start, end = self._held
        return Found(
            start=replace(start, threads=threads_before),
            end=replace(end, threads=threads_after),
            rounds=tuple(self._rounds),
            counts=self._tally.counts,
            attempts=self._tally.attempts,
            reports=tuple(self._tally.reports),
        )

    async def run(self) -> None:
        """All rounds, and what is held before and after them."""
        self._held.append(await self._settled(None))
        chance = self._chance
        async with RobotsChecker(
            user_agent=AGENTS[0],
            store=BadStore(chance, share=_STORE_FAILS),
            policy=Policy(
                fetch_deadline=self._soak.deadline,
                read_timeout=self._soak.silence,
                store_timeout=_STORE_TIMEOUT,
                allowed_networks=(NETWORK,),
            ),
            clock=self._clock,
            on_event=BadListener(self._hear, chance, share=_LISTENER_RAISES),
        ) as checker:
            for number in range(self._soak.rounds):
                self._rounds.append(await self._one_round(checker, number))
                took = self._rounds[-1].seconds
                print(f"[round {number + 1}: {took:.0f} s]", file=sys.stderr)
            self._tally.counts.update(asdict(checker.stats))
        self._held.append(await self._settled(self._held[0]))

    async def _one_round(self, checker: RobotsChecker, number: int) -> Round:
        """Ask about every origin, most of them several times."""
        self._round = number
        if number:
            self._clock.advance(ROUND_DAYS * _DAY)
        await self._begin(number)
        questions = list(self._questions(number))
        self._unanswered = set(range(self._soak.origins))
        before = checker.stats
        asked_before = self._tally.counts["asked"]
        began = perf_counter()
        await self._ask_all(checker, questions)
        # What is in force later is only known if each origin was asked now.
        again = [self._patient(origin) for origin in sorted(self._unanswered)]
        await self._ask_all(checker, again)
        seconds = perf_counter() - began
        self._tally.counts["asked again"] += len(again)
        await self._begin(number)
        return Round(
            seconds=seconds,
            asked=self._tally.counts["asked"] - asked_before,
            fetches=checker.stats.fetches - before.fetches,
            joined=checker.stats.joined - before.joined,
            held=await self._settled(self._held[0]),
        )

    async def _begin(self, number: int) -> None:
        """Tell the servers, and hear who came to where nobody should come."""
        self._tally.counts["knocks"] = await anyio.to_thread.run_sync(
            self._servers.begin, number
        )

    async def _ask_all(
        self, checker: RobotsChecker, questions: Sequence[Question]
    ) -> None:
        left = iter(questions)
        step = max(1, len(questions) // _STEPS)

        async def work() -> None:
            for question in left:
                self._tally.counts["asked"] += 1
                if self._tally.counts["asked"] % step == 0:
                    self._clock.advance(_STEP_SECONDS)
                await self._ask(checker, question)

        async with anyio.create_task_group() as workers:
            for _ in range(min(self._soak.concurrency, len(questions))):
                workers.start_soon(work)

    async def _ask(self, checker: RobotsChecker, question: Question) -> None:
        url = self._servers.origins[question.origin] + question.path
        try:
            with anyio.move_on_after(question.patience) as patience:
                answer = await question.ask(checker, question.agent, url)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is no answer)
            self._tally.report("wrong", f"{self._about(question)}: raised {error!r}")
            return
        if patience.cancelled_caught:
            self._tally.counts["given up"] += 1
            return
        self._unanswered.discard(question.origin)
        if answer is not question.expected:
            verdict = await checker.check(question.agent, url)
            self._tally.report(
                "wrong", f"{self._about(question)}: got {answer}; now {verdict}"
            )

    def _about(self, question: Question) -> str:
        kind = self._script.kind(question.origin, question.round_)
        standing = self._standings[question.origin][question.round_]
        return (
            f"round {question.round_ + 1}, origin {question.origin}, which {kind},"
            f" {standing.effect.value} in force (of round {standing.edition + 1}),"
            f" {question.agent!r} asked about {question.path}"
            f" and should get {question.expected}"
        )

    def _hear(self, event: CheckerEvent) -> None:
        """Count an attempt, and look whether it came to what it should."""
        if not isinstance(event, RobotsTxtFetched):
            return
        number = self._numbers[event.origin]
        kind = self._script.kind(number, self._round)
        self._tally.attempts[kind] += 1
        if event.access is not _EXPECTED[KINDS[kind]]:
            self._tally.report(
                "odd fetches",
                f"round {self._round + 1}, origin {number}, which {kind}:"
                f" the fetch came to {event.access.value}, {event.error}",
            )

    async def _settled(self, before: Held | None) -> Held:
        """What is held once closed sockets and ended tasks are gone, or soon."""
        until = perf_counter() + _SETTLING_SECONDS
        while True:
            held = Held.now(tasks=len(anyio.get_running_tasks()))
            if before is None or held.is_within(before) or perf_counter() > until:
                return held
            await anyio.sleep(_POLL_SECONDS)

    # --- questions ---

    def _questions(self, number: int) -> Iterator[Question]:
        """Those of a round: every origin, and some of them in crowds."""
        soak = self._soak
        chance = Random(f"questions {soak.seed} {number}")
        count = soak.checks // soak.rounds
        everybody = chance.sample(range(soak.origins), min(count, soak.origins))
        crowds = [(origin, 1) for origin in everybody]
        missing = count - len(crowds)
        while missing > 0:
            origin = int(soak.origins * chance.random() ** 2)
            crowd = min(missing, chance.randint(1, _LONGEST_CROWD))
            crowds.append((origin, crowd))
            missing -= crowd
        chance.shuffle(crowds)
        for origin, crowd in crowds:
            for _ in range(crowd):
                yield self._question(origin, chance)

    def _question(self, origin: int, chance: Random) -> Question:
        agent = chance.choice(AGENTS)
        standing = self._standings[origin][self._round]
        path = self._path(origin, standing, chance)
        patience = None
        if chance.random() < _GIVES_UP:
            patience = chance.uniform(0, _LONGEST_PATIENCE_SECONDS)
        (ask,) = chance.choices([*_WAYS], weights=[*_WAYS.values()])
        return Question(
            round_=self._round,
            origin=origin,
            agent=agent,
            path=path,
            expected=self._expected(standing, origin=origin, agent=agent, path=path),
            ask=ask,
            patience=patience,
        )

    def _patient(self, origin: int) -> Question:
        """A question that is not given up."""
        path = "/robots.txt"
        standing = self._standings[origin][self._round]
        return Question(
            round_=self._round,
            origin=origin,
            agent=AGENTS[0],
            path=path,
            expected=self._expected(
                standing, origin=origin, agent=AGENTS[0], path=path
            ),
            ask=_check,
            patience=None,
        )

    def _path(self, origin: int, standing: Standing, chance: Random) -> str:
        """One that the rules in force speak of, or others that are near."""
        other = chance.randrange(self._soak.origins)
        earlier = chance.randrange(self._round + 1)
        return chance.choice(
            [
                *paths(origin, standing.edition) * 3,
                *paths(origin, self._round),
                *paths(origin, earlier),
                chance.choice(paths(other, self._round)),
                "/robots.txt",
                "/",
            ]
        )


async def _can_fetch(checker: RobotsChecker, agent: str, url: str) -> bool:
    return await checker.can_fetch(agent, url)


async def _check(checker: RobotsChecker, agent: str, url: str) -> bool:
    return (await checker.check(agent, url)).allowed


async def _can_fetch_many(checker: RobotsChecker, agent: str, url: str) -> bool:
    first, _, last = await checker.can_fetch_many(agent, [url, f"{url}/more", url])
    if first is not last:
        raise RuntimeError("expected one answer about one URL, got both")
    return last


async def _refresh(checker: RobotsChecker, agent: str, url: str) -> bool:
    await checker.refresh(url)
    return await checker.can_fetch(agent, url)


_WAYS = {_can_fetch: 50, _check: 44, _can_fetch_many: 5, _refresh: 1}
"""How questions are asked, with how many of a hundred are asked so."""


# --- what is shown --------------------------------------------------------------


def run_of(soak: Soak, found: Found, about: dict[str, str]) -> Run:
    """The figures and the promises."""
    return Run(
        surroundings=about,
        tables=(_totals_table(soak, found), _rounds_table(found), _kinds_table(found)),
        bars=bars(found),
    )


def bars(found: Found) -> tuple[Bar, ...]:
    """What was promised."""
    start, end, counts = found.start, found.end, found.counts

    def bar(what: str, value: float, unit: str, most: float = 0) -> Bar:
        return Bar(what=what, value=value, bar=most, unit=unit, is_ceiling=True)

    warm, last = found.rounds[:WARM_UP_ROUNDS][-1], found.rounds[-1]
    growth = (last.held.resident - warm.held.resident) / _MIB
    return (
        bar("wrong answers", counts["wrong"], "answers"),
        bar("fetches that came to something else", counts["odd fetches"], "fetches"),
        bar("connections to addresses inside", counts["knocks"], "connections"),
        bar("memory, more than after the warm-up", growth, "MiB", _MOST_GROWTH_MIB),
        bar(
            "file descriptors, more than at the start",
            end.descriptors - start.descriptors,
            "descriptors",
        ),
        bar("tasks, more than at the start", end.tasks - start.tasks, "tasks"),
        bar("threads, more than at the start", end.threads - start.threads, "threads"),
    )


def _totals_table(soak: Soak, found: Found) -> Table:
    counts = found.counts
    seconds = sum(each.seconds for each in found.rounds)
    days = (len(found.rounds) - 1) * ROUND_DAYS
    rows: Iterable[tuple[Cell, ...]] = (
        ("origins", soak.origins),
        ("questions", counts["asked"]),
        ("at once", soak.concurrency),
        ("seconds", seconds),
        ("questions per second", counts["asked"] / seconds),
        ("days that went by on the checker's clock", days),
        ("questions given up by who asked", counts["given up"]),
        (
            "questions asked again, because all others were given up",
            counts["asked again"],
        ),
        ("questions that joined the fetch of another", counts["joined"]),
        ("fetches", counts["fetches"]),
        ("fetches that brought a file", counts["successful"]),
        ("fetches that found that there is none", counts["unavailable"]),
        ("fetches that failed", counts["unreachable"]),
        ("operations that the store did not do", counts["store_failures"]),
        ("calls of the listener that raised", counts["event_failures"]),
    )
    return Table(
        name="totals",
        title=f"The soak, on {soak.loop}",
        columns=("what", "found"),
        rows=tuple(rows),
    )


def _rounds_table(found: Found) -> Table:
    def row(name: str, held: Held, *figures: Cell) -> tuple[Cell, ...]:
        more = figures or (None,) * 4
        return (
            name,
            *more,
            held.resident / _MIB,
            held.descriptors,
            held.tasks,
            held.threads,
        )

    rows = [row("before", found.start)]
    for number, each in enumerate(found.rounds, 1):
        speed = each.asked / each.seconds
        figures = (each.asked, speed, each.fetches, each.joined)
        rows.append(row(str(number), each.held, *figures))
    rows.append(row("closed", found.end))
    return Table(
        name="rounds",
        title="What was held at the end of each round",
        columns=(
            *("round", "questions", "per second", "fetches", "joined"),
            *("MiB", "descriptors", "tasks", "threads"),
        ),
        rows=tuple(rows),
    )


def _kinds_table(found: Found) -> Table:
    return Table(
        name="kinds",
        title="What the origins did",
        columns=("the origin", "is", "fetches", "each comes to"),
        rows=tuple(
            (
                kind,
                "well" if kind in SOUND else "faulty",
                found.attempts[kind],
                to.value,
            )
            for kind, to in KINDS.items()
        ),
    )


def _about(soak: Soak) -> dict[str, str]:
    names = ["robotsgate", "httpx", "httpcore", "anyio"]
    if soak.loop == "trio":
        names.append("trio")
    return surroundings() | {
        "packages": ", ".join(f"{name} {metadata.version(name)}" for name in names),
        "event loop": soak.loop,
        "seed": str(soak.seed),
        "faulty": f"{soak.faults:.0%} of the origins in each round",
    }


_OPTIONS = ("origins", "checks", "concurrency", "faults", "seed", "loop")


def _arguments() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = arguments.add_argument
    usual = Soak()
    add("--origins", type=int, default=usual.origins, help="how many there are")
    add("--checks", type=int, default=usual.checks, help="how many questions")
    add("--concurrency", type=int, default=usual.concurrency, help="asked at once")
    add("--faults", type=float, default=usual.faults, help="share that is not well")
    add("--seed", type=int, default=usual.seed, help="of origins and questions")
    add("--loop", choices=("asyncio", "trio"), default=usual.loop)
    add("--json", type=Path, metavar="FILE", help="write all figures to it")
    add("--page", type=Path, metavar="FILE", help="put the tables into this Markdown")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
