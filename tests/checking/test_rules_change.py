"""When and how often a checker reports that the rules of an origin have changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import AccessResult, MemoryStore, Policy, RulesChanged
from robotsgate.checking._events import EventReporter
from robotsgate.robotstxt import _parser
from robotsgate.robotstxt._matcher import RuleSet
from robotsgate.testing import FakeSite, ManualClock

from .builders import DAY, ORIGIN, FailingStore, GatedStore, checker_of, let_others_run

if TYPE_CHECKING:
    from robotsgate import CheckerEvent, Store
    from robotsgate.robotstxt._model import LineKind
    from robotsgate.robotstxt._records import Records, RuleLines

pytestmark = pytest.mark.anyio

RULES_FOR_ALL = """\
Disallow: /private
Allow: /private/open
Crawl-delay: 5
"""
FILE = f"""\
User-agent: *
{RULES_FOR_ALL}
User-agent: NewsBot
User-agent: ShopBot
Disallow: /~shop
Request-rate: 1/10
"""
NO_FILE = None


class Crawl:
    """A crawler that fetches the same robots.txt once a day, in one or more runs."""

    def __init__(self, store: Store | None = None) -> None:
        self.clock = ManualClock()
        self.site = FakeSite()
        self.store = MemoryStore() if store is None else store
        self.events: list[RulesChanged] = []
        self.start()

    def start(self, policy: Policy = Policy()) -> None:
        """Continue with a new checker, as in a later run or another process."""
        self.checker = checker_of(
            self.site,
            policy=policy,
            store=self.store,
            clock=self.clock,
            on_event=self._record,
        )

    async def fetch(self, body: str | None, *, status: int = 200) -> None:
        """Fetch `body`; `None` means that there is no file."""
        if body is None:
            body, status = "", 404
        self.site.serve(ORIGIN, body, status=status)
        self.clock.advance(DAY)
        await self.checker.refresh(ORIGIN)

    def _record(self, event: CheckerEvent) -> None:
        if isinstance(event, RulesChanged):
            self.events.append(event)


async def changes_in(*bodies: str | None) -> list[RulesChanged]:
    """The events when `bodies` are fetched one after another."""
    crawl = Crawl()
    for body in bodies:
        await crawl.fetch(body)
    return crawl.events


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FILE, "\n\n".join(reversed(FILE.split("\n\n")))),
        (FILE, FILE.replace("/private\n", "/private # ours\n") + "# The end\n"),
        (FILE, FILE.replace(": ", "  :\t").replace("\n", "\r\n")),
        (FILE, FILE.upper().replace("/PRIVATE/OPEN", "/private/open")
         .replace("/PRIVATE", "/private").replace("/~SHOP", "/~shop")),
        (FILE, FILE.replace("~", "%7e")),
        (FILE, FILE.replace("Disallow: /~shop", "Disallow: /~shop\nDisallow: /~shop")),
        (FILE, FILE.replace("Disallow: /~shop", "Disallow:\nDisallow: /~shop")),
        (FILE, FILE.replace("User-agent: ShopBot\n", "")
         + "User-agent: shopbot/2.0\nRequest-rate: 1/10s\nDisallow: /~shop\n"),
        (FILE, f"{FILE}Sitemap: {ORIGIN}/sitemap.xml\nContent-Signal: search=no\n"),
        (FILE, f"{FILE}User-agent: MailBot\n{RULES_FOR_ALL}"),
        (FILE, f"User-agent:\nDisallow: /\n\n{FILE}"),
        (NO_FILE, ""),
        (NO_FILE, "User-agent: *\nAllow: /\n"),
        ("User-agent: *\nDisallow: /", "User-agent: *\nDisallow: /\nDisallow: oops\n"),
        ("User-agent: *\nDisallow: oops\nAllow: /x\n", "User-agent: *\nAllow: /x\n"),
    ],
    ids=[
        "groups in another order",
        "comments",
        "whitespace",
        "case of fields and agents",
        "an escape",
        "a repeated rule",
        "an empty rule",
        "a split group",
        "a sitemap and a usage preference",
        "a group with the rules of *",
        "a group without an agent",
        "an empty file",
        "a file that allows everything",
        "a rule that matches nothing",
        "a rule that matches nothing, with allow rules",
    ],
)  # fmt: skip
async def test_different_text_with_the_same_rules_is_not_a_change(
    before: str | None, after: str
) -> None:
    assert await changes_in(before, after, before) == []


@pytest.mark.parametrize(
    "after",
    [
        FILE.replace("/private\n", "/Private\n"),
        FILE.replace("Allow: /private/open", "Disallow: /private/open"),
        FILE.replace("Crawl-delay: 5", "Crawl-delay: 6"),
        FILE.replace("Request-rate: 1/10", "Request-rate: 1/20"),
        FILE.replace("ShopBot", "ChatBot"),
        f"{FILE}User-agent: ChatBot\nDisallow: /\n",
        f"{FILE}User-agent: ChatBot\nDisallow:\n",
        NO_FILE,
    ],
    ids=[
        "case of a path",
        "allow became disallow",
        "a crawl-delay",
        "a request rate",
        "another agent",
        "a new group",
        "a new group without rules, while * has some",
        "the file was removed",
    ],
)
async def test_different_rules_are_reported_once_each_way(after: str | None) -> None:
    there, back = await changes_in(FILE, FILE, after, after, FILE, FILE)

    assert there.origin == back.origin == ORIGIN
    assert (there.before, there.after) == (back.after, back.before)
    assert there.before != there.after


async def test_digests_show_which_agents_are_affected() -> None:
    (event,) = await changes_in(FILE, FILE.replace("Crawl-delay: 5", "Crawl-delay: 6"))

    assert set(event.before) == set(event.after) == {"*", "newsbot", "shopbot"}
    changed = [one for one in event.before if event.before[one] != event.after[one]]
    assert changed == ["*"]
    assert event.before["newsbot"] == event.before["shopbot"]
    assert json.loads(json.dumps(event.as_dict()))["after"] == event.after


async def test_removed_file_has_no_digests() -> None:
    (event,) = await changes_in(FILE, NO_FILE)

    assert event.after == {}


async def test_change_is_reported_after_an_outage() -> None:
    crawl = Crawl()
    await crawl.fetch(FILE)
    await crawl.fetch("", status=503)
    assert crawl.events == []

    await crawl.fetch("User-agent: *\nDisallow: /\n")

    assert len(crawl.events) == 1


async def test_restricted_origin_is_not_compared() -> None:
    crawl = Crawl()
    crawl.start(Policy(on_access_denied=AccessResult.RESTRICTED))
    await crawl.fetch(FILE)

    await crawl.fetch("", status=403)
    await crawl.fetch("User-agent: *\nDisallow: /\n")

    assert crawl.events == []


async def test_forgotten_rules_are_not_compared() -> None:
    crawl = Crawl()
    await crawl.fetch(FILE)
    await crawl.checker.forget(ORIGIN)

    await crawl.fetch(NO_FILE)

    assert crawl.events == []


async def test_change_is_reported_only_by_the_process_that_stores_it() -> None:
    crawl = Crawl()
    await crawl.fetch(FILE)
    first = crawl.checker
    crawl.start()
    await crawl.fetch(NO_FILE)
    crawl.checker = first

    await crawl.fetch(NO_FILE)

    assert len(crawl.events) == 1


async def test_change_that_was_not_stored_is_reported_once_it_is() -> None:
    store = FailingStore()
    crawl = Crawl(store)
    await crawl.fetch(FILE)
    store.failing = ("update",)
    await crawl.fetch(NO_FILE)
    assert crawl.events == []
    store.failing = ()

    await crawl.fetch(NO_FILE)
    crawl.start()
    await crawl.fetch(NO_FILE)

    assert len(crawl.events) == 1


async def test_change_not_stored_before_a_run_ends_is_reported_by_the_next() -> None:
    store = GatedStore("update")
    store.gate.set()
    crawl = Crawl(store)
    await crawl.fetch(FILE)
    store.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.fetch, NO_FILE)
        await let_others_run()
        assert store.waiting == 1
        tasks.cancel_scope.cancel()
    await crawl.checker.aclose()
    assert crawl.events == []
    store.gate.set()

    crawl.start()
    await crawl.fetch(NO_FILE)

    assert len(crawl.events) == 1


async def test_change_is_reported_even_if_the_checker_is_closed_meanwhile() -> None:
    crawl = Crawl()
    await crawl.fetch(FILE)
    reporter = crawl.checker._reporter
    assert isinstance(reporter, EventReporter)
    async with anyio.create_task_group() as tasks, reporter._one_at_a_time:
        async with anyio.create_task_group() as callers:
            callers.start_soon(crawl.fetch, NO_FILE)
            await let_others_run()
            callers.cancel_scope.cancel()
        tasks.start_soon(crawl.checker.aclose)
        await let_others_run()
        assert crawl.events == []

    assert len(crawl.events) == 1


# --- hostile files ----------------------------------------------------------------


def overlapping(agents: int) -> str:
    """A file with a large group shared by `agents`, and a small one for each agent."""
    names = [f"bot{number}" for number in range(agents)]
    return "".join(
        [
            *(f"User-agent: {name}\n" for name in names),
            *(f"Disallow: /private/{number:03}/\n" for number in range(500)),
            *(f"User-agent: {name}\nDisallow: /{name}\n" for name in names),
        ]
    )


@pytest.mark.parametrize(("agents", "compared"), [(30, 30), (60, 0)])
async def test_large_shared_group_is_compared_only_for_a_few_agents(
    monkeypatch: pytest.MonkeyPatch, agents: int, compared: int
) -> None:
    """A hostile file used to take minutes, and gigabytes for all of its rule sets."""
    sizes: list[int] = []
    make = RuleSet.__init__

    def make_and_count(rules: RuleSet, *sides: RuleLines) -> None:
        make(rules, *sides)
        sizes.append(len(rules))

    monkeypatch.setattr(RuleSet, "__init__", make_and_count)

    events = await changes_in(NO_FILE, overlapping(agents))

    assert [len(event.after) for event in events] == [compared] * bool(compared)
    assert sizes == [501] * compared


@pytest.mark.parametrize(
    ("line", "most_reads"),
    [("Crawl-delay: 1", 30), ("Request-rate: 1/2", 30), ("License: x", 0)],
)
async def test_lines_between_many_agents_are_not_searched_for_each_agent(
    monkeypatch: pytest.MonkeyPatch, line: str, most_reads: int
) -> None:
    reads = 0

    class Watched(tuple[Any, ...]):
        __slots__ = ()

        def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 (as in tuple)
            nonlocal reads
            reads += 1
            return super().__getitem__(index)

    note = _parser._note

    def note_and_watch(
        kind: LineKind | str | None, value: str, number: int, result: Records
    ) -> None:
        note(kind, value, number, result)
        records: list[Any] = result.rates or result.others
        records[-1] = Watched(records[-1])

    monkeypatch.setattr(_parser, "_note", note_and_watch)
    body = "".join(f"User-agent: bot{number}\n{line}\n" for number in range(300))

    (event,) = await changes_in(NO_FILE, f"{body}Disallow: /\n")

    assert len(event.after) == 300
    assert reads <= most_reads * 300
