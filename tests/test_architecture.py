"""What is loaded when; import-linter and ruff hold everything else."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import robotsgate

PUBLIC = {*robotsgate.__all__, *robotsgate._EXTRA_HOMES}
PACKAGE = Path(robotsgate.__file__).parent
WORLD = {
    "anyio",
    "asyncio",
    "cachetools",
    "h11",
    "httpcore",
    "httpx",
    "socket",
    "sqlite3",
    "ssl",
}


def modules_after(statement: str) -> set[str]:
    """What a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    # Coverage loads half of the standard library.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE")
    }
    done = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "room",
    [
        "robotstxt",
        "urls",
        "caching",
        "archive",
        "errors",
        "politeness._host_record",
        "page",
    ],
)
def test_pure_room_loads_nothing_of_the_world(room: str) -> None:
    loaded = modules_after(f"import robotsgate.{room}")

    assert f"robotsgate.{room}" in loaded
    assert loaded & WORLD == set()


def test_checker_loads_no_test_library_and_no_extra() -> None:
    loaded = modules_after("from robotsgate import RobotsChecker")

    assert (
        loaded & {"trio", "pytest", "respx", "coredis", "robotsgate.testing"} == set()
    )


@pytest.mark.parametrize(
    "module", ["stores", "fetching", "checking", "politeness", "testing"]
)
def test_module_can_be_imported_first(module: str) -> None:
    assert f"robotsgate.{module}" in modules_after(f"import robotsgate.{module}")


def test_each_public_name_is_declared_where_it_is_loaded_from() -> None:
    """The imports for type checkers and the table for the interpreter are one."""
    source = (PACKAGE / "__init__.py").read_text()
    loaded: dict[str, object] = {}
    exec(source.replace("if TYPE_CHECKING:", "if True:"), loaded)  # noqa: S102

    declared = {name for name in loaded if name[:1].isupper() or name in PUBLIC}
    assert declared - {"TYPE_CHECKING"} == PUBLIC
    for name in PUBLIC:
        assert loaded[name] is getattr(robotsgate, name), name


@pytest.mark.parametrize("name", robotsgate._EXTRA_HOMES)
def test_name_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "coredis", None)
    for module in ("politeness.redis_ledger", "stores.redis", "stores._redis_server"):
        monkeypatch.delitem(sys.modules, f"robotsgate.{module}", raising=False)
    monkeypatch.delitem(vars(robotsgate), name, raising=False)

    with pytest.raises(ImportError, match=rf"{name} .* 'robotsgate\[redis\]'"):
        getattr(robotsgate, name)


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("aiohttp", "aiohttp"),
        ("crawlee", "crawlee.crawlers"),
        ("otel", "opentelemetry"),
        ("requests", "requests"),
        ("scrapy", "scrapy"),
        ("warc", "fastwarc"),
    ],
)
def test_integration_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, needed: str
) -> None:
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"robotsgate.integrations.{name}", raising=False)

    with pytest.raises(ImportError, match=rf"pip install 'robotsgate\[{name}\]'"):
        importlib.import_module(f"robotsgate.integrations.{name}")


def test_missing_module_of_another_name_is_told_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "robotsgate.stores.sqlite", None)
    monkeypatch.delitem(vars(robotsgate), "SQLiteStore", raising=False)

    with pytest.raises(ModuleNotFoundError, match="sqlite"):
        _ = robotsgate.SQLiteStore


def test_dir_lists_the_public_names() -> None:
    assert dir(robotsgate) == sorted(robotsgate.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'RobotChecker'"):
        _ = robotsgate.RobotChecker


def test_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
