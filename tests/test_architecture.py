"""What is loaded when; import-linter and ruff hold everything else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import robotsgate

PACKAGE = Path(robotsgate.__file__).parent
WORLD = {
    "anyio",
    "asyncio",
    "cachetools",
    "httpcore",
    "httpx",
    "socket",
    "sqlite3",
    "ssl",
}


def modules_after(statement: str) -> set[str]:
    """What a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("room", ["robotstxt", "urls", "caching", "errors"])
def test_pure_room_loads_nothing_of_the_world(room: str) -> None:
    loaded = modules_after(f"import robotsgate.{room}")

    assert f"robotsgate.{room}" in loaded
    assert loaded & WORLD == set()


def test_checker_loads_no_test_library_and_no_extra() -> None:
    loaded = modules_after("from robotsgate import RobotsChecker")

    assert (
        loaded & {"trio", "pytest", "respx", "coredis", "robotsgate.testing"} == set()
    )


@pytest.mark.parametrize("module", ["stores", "fetching", "checking", "testing"])
def test_module_can_be_imported_first(module: str) -> None:
    assert f"robotsgate.{module}" in modules_after(f"import robotsgate.{module}")


def test_each_public_name_is_declared_where_it_is_loaded_from() -> None:
    """The imports for type checkers and the table for the interpreter are one."""
    source = (PACKAGE / "__init__.py").read_text()
    loaded: dict[str, object] = {}
    exec(source.replace("if TYPE_CHECKING:", "if True:"), loaded)  # noqa: S102

    for name in robotsgate.__all__:
        assert loaded[name] is getattr(robotsgate, name), name
    assert set(robotsgate._HOMES) | {"__version__"} == set(robotsgate.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'RobotChecker'"):
        _ = robotsgate.RobotChecker


def test_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
