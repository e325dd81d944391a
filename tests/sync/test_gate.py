"""The blocking gate, which works like the asynchronous one."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import pytest
import requests

import robotsgate
from robotsgate import (
    DisallowedError,
    SystemClock,
    TurnDeadlockError,
    TurnNotInTimeError,
    sync,
)
from robotsgate.events import HostBlocked
from robotsgate.politeness import HostState, LocalLedger
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    RULES,
    checker_of,
    site_of,
)
from tests.politeness.test_turn_end import of_requests
from tests.systems import need_posix
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


_TIMEOUT_SECONDS = 30.0
DELAY = 10.0


class Crawl:
    """A gate shared by threads, with a clock that the test controls.

    Attributes:
        visited_at: the start time of each turn in `visit`.
    """

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 (PolitenessGate's)
        self.clock = ManualClock()
        self.checker = sync.RobotsChecker(
            user_agent=AGENT, client=site_of(RULES), clock=self.clock
        )
        self.events: list[object] = []
        self.gate = sync.PolitenessGate(
            self.checker,
            AGENT,
            default_delay=DELAY,
            on_event=self.events.append,
            **arguments,
        )
        self.visited_at: list[float] = []
        self.threads = ThreadPoolExecutor(8)
        self.checker.prefetch([PUBLIC, OTHER_ORIGIN])

    def visit(self, url: str = PUBLIC, *, patience: float | None = None) -> None:
        with self.gate.turn(url, patience=patience):
            self.visited_at.append(self.clock.monotonic())

    def pass_time(self, seconds: float) -> None:
        self.checker._loop.portal.call(self.clock.pass_time, seconds)

    def wait_for(self, **counts: int) -> None:
        """Return once the gate's counters have these values."""
        gives_up_at = SystemClock().monotonic() + _TIMEOUT_SECONDS
        while SystemClock().monotonic() < gives_up_at:
            stats = self.gate.stats.as_dict()
            if stats | counts == stats:
                return
        pytest.fail(f"expected {counts}, got {stats}")

    @contextmanager
    def turn_in_another_thread(self, url: str = PUBLIC) -> Iterator[None]:
        """Keep a turn open in another thread for the duration of the block."""
        has_started, may_end = threading.Event(), threading.Event()

        def hold() -> None:
            with self.gate.turn(url):
                has_started.set()
                may_end.wait(_TIMEOUT_SECONDS)

        holding = self.threads.submit(hold)
        try:
            assert has_started.wait(_TIMEOUT_SECONDS)
            yield
        finally:
            may_end.set()
            holding.result(_TIMEOUT_SECONDS)


@pytest.fixture
def crawl() -> Iterator[Crawl]:
    crawl = Crawl()
    with crawl.threads, crawl.checker, crawl.gate:
        yield crawl


def signatures(*kinds: type) -> dict[str, list[tuple[object, ...]]]:
    """The parameters of the methods of `kinds`, and of the first one's `__init__`."""
    return {
        name: [
            (parameter.name, parameter.kind, type(parameter.default))
            for parameter in inspect.signature(member).parameters.values()
        ]
        for kind in kinds
        for name, member in vars(kind).items()
        if inspect.isfunction(member)
        and ((kind, name) == (kinds[0], "__init__") or name[0] != "_")
    }


@cases("ours theirs missing", {
    "checker": ([sync.RobotsChecker], [robotsgate.RobotsChecker], ["open"]),
    "gate": (
        [sync.PolitenessGate, sync.Turn], [robotsgate.PolitenessGate, robotsgate.Turn],
        ["schedule", "schedule_hosts", "leave_task"],
    ),
})  # fmt: skip
def test_members_and_arguments_match_the_asynchronous_ones(
    ours: list[type], theirs: list[type], missing: list[str]
) -> None:
    expected = signatures(*theirs)
    expected["close"] = expected.pop("aclose")
    for name in missing:
        del expected[name]

    assert signatures(*ours) == expected


def test_threads_respect_a_hosts_delay_but_not_that_of_others(crawl: Crawl) -> None:
    with crawl.turn_in_another_thread():
        visits = [crawl.threads.submit(crawl.visit) for _ in range(2)]
        crawl.wait_for(waiting=2)
        crawl.visit(OTHER_ORIGIN)
    for _ in visits:
        crawl.pass_time(DELAY)
        wait(visits, _TIMEOUT_SECONDS, FIRST_COMPLETED)
        visits = [visit for visit in visits if not visit.done()]

    assert crawl.visited_at == [0, DELAY, 2 * DELAY]


def test_arguments_and_results_are_those_of_the_async_gate(crawl: Crawl) -> None:
    with pytest.raises(DisallowedError):
        crawl.visit(PRIVATE)
    with crawl.gate.turn(PUBLIC) as turn:
        assert turn.url == PUBLIC
        assert crawl.gate.status(PUBLIC).under_way == 1
        turn.report(status=429, retry_after="99")
    with pytest.raises(TurnNotInTimeError) as late:
        crawl.visit(patience=5)

    ready_at = late.value.ready_at
    assert ready_at == crawl.gate.ready_at(ORIGIN) >= crawl.clock.now() + 99
    host = "example.com"
    assert crawl.events == [HostBlocked(host=host, cause="429", ready_at=ready_at)]
    stats = crawl.gate.stats
    assert (stats.turns, stats.incidents, stats.disallowed) == (1, 1, 1)
    crawl.gate.forget(PUBLIC)
    assert crawl.gate.status(PUBLIC).state is HostState.OPEN


def test_exception_raised_in_a_turn_may_be_a_report(crawl: Crawl) -> None:
    with pytest.raises(requests.HTTPError), crawl.gate.turn(PUBLIC):
        raise of_requests(429)

    (event,) = crawl.events
    assert isinstance(event, HostBlocked)
    assert event.cause == "429"


def test_thread_cannot_wait_for_itself(crawl: Crawl) -> None:
    """Each call is a separate task in the event loop, so it used to wait forever."""
    with crawl.gate.turn(PUBLIC):
        with pytest.raises(TurnDeadlockError):
            crawl.visit()
        crawl.visit(OTHER_ORIGIN)

    crawl.pass_time(DELAY)
    crawl.visit()


def test_turn_of_a_dead_thread_ends_when_it_is_overdue(crawl: Crawl) -> None:
    """The next thread, which often gets the same id, waits like any other."""
    leaking = threading.Thread(target=crawl.gate.turn(PUBLIC).__enter__)
    leaking.start()
    leaking.join()
    visiting = threading.Thread(target=crawl.visit)
    visiting.start()
    crawl.wait_for(waiting=1)
    crawl.pass_time(300 + DELAY)
    visiting.join()

    assert crawl.visited_at == [300 + DELAY]
    assert crawl.gate.stats.overdue == 1


def test_wait_interrupted_by_a_signal_leaves_the_queue(crawl: Crawl) -> None:
    """Ctrl-C and Celery's soft time limits do this."""
    need_posix()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous_handler = signal.signal(signal.SIGUSR1, interrupt)
    main = threading.get_ident()

    def send_signal() -> None:
        crawl.wait_for(waiting=1)
        signal.pthread_kill(main, signal.SIGUSR1)

    try:
        with crawl.turn_in_another_thread():
            sending = crawl.threads.submit(send_signal)
            with pytest.raises(KeyboardInterrupt):
                crawl.visit()
            sending.result()

            crawl.wait_for(waiting=0)
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)


def test_turn_that_started_for_an_interrupted_thread_is_given_back(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with time limits, which a thread notices only after its wait."""
    portal = crawl.checker._loop.portal
    call = portal.call

    def call_and_interrupt(*arguments: Any) -> None:  # noqa: ANN401 (for any call)
        call(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(portal, "call", call_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            crawl.visit()

    crawl.wait_for(turns=1, under_way=0)
    crawl.visit(patience=0)


@pytest.mark.parametrize("closed", ["gate", "checker"])
def test_closing_ends_waits_and_refuses_new_turns(crawl: Crawl, closed: str) -> None:
    """The checker used to wait for the threads that were waiting for turns."""
    with crawl.turn_in_another_thread():
        waiting = crawl.threads.submit(crawl.visit)
        crawl.wait_for(waiting=1)

        getattr(crawl, closed).close()

        with pytest.raises(RuntimeError, match="the gate is closed"):
            waiting.result(_TIMEOUT_SECONDS)
    with pytest.raises(RuntimeError, match=f"the {closed} is closed"):
        crawl.visit()
    crawl.gate.close()
    is_open = nullcontext() if closed == "gate" else pytest.raises(RuntimeError)
    with is_open, sync.PolitenessGate(crawl.checker, AGENT) as other:
        other.status(PUBLIC)


def test_turn_keeps_its_gate_and_checker_open() -> None:
    """A task queue's process keeps a gate, or only a turn."""
    turn = sync.PolitenessGate(
        sync.RobotsChecker(user_agent=AGENT, client=FakeSite()), AGENT
    ).turn(PUBLIC)
    gc.collect()

    with turn:
        turn.report(status=200)
    with pytest.warns(ResourceWarning, match="unclosed"):
        del turn


def test_gates_of_one_checker_are_closed_independently(crawl: Crawl) -> None:
    with sync.PolitenessGate(crawl.checker, AGENT) as other, other.turn(PUBLIC):
        pass

    crawl.visit()
    assert len(crawl.checker._loop.gates) == 1


class RecordingLedger(LocalLedger):
    """Records in which threads it is opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []

    async def __aenter__(self) -> Self:
        self.calls.append(("opened", threading.current_thread().name))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.calls.append(("closed", threading.current_thread().name))


@pytest.mark.parametrize("owner", ["gate", "checker"])
def test_ledger_is_opened_and_closed_in_the_event_loops_thread(owner: str) -> None:
    ledger = RecordingLedger()
    crawl = Crawl(ledger=ledger)
    with crawl.checker:
        crawl.visit()

        (crawl.gate if owner == "gate" else crawl.checker).close()

        assert ledger.calls == [("opened", "robotsgate"), ("closed", "robotsgate")]
    assert len(ledger.calls) == 2


@pytest.mark.parametrize("make_copy", [pickle.dumps, copy.copy], ids=["pickle", "copy"])
@pytest.mark.parametrize("kind", ["checker", "gate"])
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_checkers_and_gates_cannot_be_pickled_or_copied(
    crawl: Crawl, kind: str, make_copy: Callable[[object], object], *, is_async: bool
) -> None:
    """The error used to name a lambda, a lock or another part deep inside."""
    original = getattr(crawl, kind)
    if is_async:
        original = getattr(original, f"_{kind}")

    with pytest.raises(TypeError, match="or copied: create one in each process") as no:
        make_copy(original)

    assert str(no.value).startswith(f"a {type(original).__name__} cannot be pickled")


def test_wrong_arguments_raise_immediately(crawl: Crawl) -> None:
    with pytest.raises(TypeError, match=r"from robotsgate\.sync, got <robotsgate\."):
        sync.PolitenessGate(checker_of(FakeSite()), AGENT)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_hosts"):
        sync.PolitenessGate(crawl.checker, AGENT, max_hosts=0)
    with pytest.raises(ValueError, match="patience"):
        crawl.gate.turn(PUBLIC, patience=-1)


FORKED = """
import os, sys, warnings
from robotsgate import sync
from tests.checking.builders import AGENT, OTHER_ORIGIN, PUBLIC, site_of

def refuses(call):
    try:
        call()
    except RuntimeError as error:
        return str(error) == "the checker is closed, or belongs to another process"

warnings.simplefilter("ignore")
with (
    sync.RobotsChecker(client=site_of(), store="sqlite:///{path}") as checker,
    sync.PolitenessGate(checker, AGENT, default_delay=0) as gate,
):
    with gate.turn(PUBLIC) as turn:
        child = os.fork()
    if not child:
        calls = (
            turn.report, gate.turn(PUBLIC).__enter__, lambda: gate.stats,
            lambda: checker.can_fetch(AGENT, OTHER_ORIGIN),
        )
        gate.close()
        os._exit(not all(map(refuses, calls)))
    _, status = os.waitpid(child, 0)
    with gate.turn(PUBLIC):
        pass
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_forked_process_is_refused(tmp_path: Path) -> None:
    need_posix()
    result = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-W", "error", "-c", FORKED.format(path=tmp_path / "db")],
        check=False,
        timeout=_TIMEOUT_SECONDS,
        stderr=subprocess.PIPE,
        text=True,
    )

    assert (result.returncode, result.stderr) == (0, "")
