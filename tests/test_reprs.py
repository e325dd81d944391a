"""What objects look like in logs and tracebacks, which must contain no secrets."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import httpx
import pytest

from robotsgate import (
    MemoryStore,
    PolitenessGate,
    RobotsArchive,
    RobotsChecker,
    RobotsTxt,
    SQLiteStore,
    sync,
)
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SECRET = "hunter2"
_AGENT = f"ExampleBot/1.0 ({_SECRET})"
_URL = f"https://user:{_SECRET}@h.example/page"
_REDIS = f"redis://:{_SECRET}@h.example"
_SHOWN_REDIS = "<robotsgate.RedisStore prefix='robotsgate:'>"


async def _nothing() -> None:
    """Close something that has no `aclose`."""


def _checker() -> RobotsChecker:
    client = httpx.AsyncClient(
        proxy=f"http://user:{_SECRET}@proxy.example",
        headers={"Authorization": _SECRET},
    )
    overrides = {"https://h.example": _SECRET}
    return RobotsChecker(user_agent=_AGENT, client=client, overrides=overrides)


@cases("make shown", {
    "a checker with a client": (
        lambda _: _checker(),
        "<robotsgate.RobotsChecker live_origins=0 own_store=None>",
    ),
    "a checker with a store": (
        lambda _: RobotsChecker(user_agent=_AGENT, store=_REDIS),
        f"<robotsgate.RobotsChecker live_origins=0 own_store={_SHOWN_REDIS}>",
    ),
    "a gate": (
        lambda _: PolitenessGate(_checker(), _AGENT),
        "<robotsgate.PolitenessGate agent='examplebot' waiting=0>",
    ),
    "a turn": (
        lambda _: PolitenessGate(_checker(), _AGENT).turn(_URL),
        "<robotsgate.Turn url='https://h.example/page'>",
    ),
    "a file": (
        lambda _: RobotsTxt.parse(f"# {_SECRET}"),
        "<robotsgate.RobotsTxt dialect='rfc9309' characters=9>",
    ),
    "an archive": (
        lambda _: RobotsArchive({"https://h.example": _SECRET.encode()}),
        "<robotsgate.RobotsArchive live_origins=0>",
    ),
    "a store in memory": (lambda _: MemoryStore(), "<robotsgate.MemoryStore keys=0>"),
    "a store in a file": (
        lambda folder: SQLiteStore(f"{folder}/a"),
        "<robotsgate.SQLiteStore path='{folder}/a'>",
    ),
})  # fmt: skip
@pytest.mark.anyio
async def test_repr_shows_no_secret(
    make: Callable[[Path], object], shown: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as closing:
        one = make(tmp_path)
        closing.push_async_callback(getattr(one, "aclose", _nothing))

        assert repr(one) == shown.replace("{folder}", str(tmp_path))


def test_repr_in_sync_names_that_module() -> None:
    with (
        sync.RobotsChecker(user_agent=_AGENT) as checker,
        sync.PolitenessGate(checker, _AGENT) as gate,
    ):
        shown = [repr(one) for one in (checker, gate, gate.turn(_URL))]

    assert shown == [
        "<robotsgate.sync.RobotsChecker live_origins=0 own_store=None>",
        "<robotsgate.sync.PolitenessGate agent='examplebot' waiting=0>",
        "<robotsgate.sync.Turn url='https://h.example/page'>",
    ]
