"""The layers of the package, as far as they can be seen without import-linter."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import robotsgate

PACKAGE = Path(robotsgate.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
PURE_FOLDERS = ("caching", "robotstxt")
WORLD = frozenset(
    {
        "anyio",
        "asyncio",
        "cachetools",
        "httpcore",
        "httpx",
        "logging",
        "os",
        "random",
        "socket",
        "sqlite3",
        "time",
        "trio",
    }
)
CLOCKS = frozenset({"time.time", "time.monotonic", "datetime.now", "anyio.sleep"})


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The dotted names of the modules that a module imports, wherever it does."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} imports relatively"
            names.add(node.module or "")
            if node.module == "robotsgate":
                names.update(f"robotsgate.{alias.name}" for alias in node.names)
    return frozenset(names)


def modules_after_import_of(statement: str) -> set[str]:
    """What a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
    )
    loaded: list[str] = json.loads(done.stdout)
    return set(loaded)


def test_all_modules_are_looked_at() -> None:
    assert {"_checker.py", "caching/_plan.py", "robotstxt/_parser.py"} <= {
        name_of(path) for path in MODULES
    }


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(tree_of(path))

    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":", "?"))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_tells_what_it_exports(path: Path) -> None:
    targets = {
        target.id
        for node in tree_of(path).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    has_code = len(tree_of(path).body) > 1

    assert "__all__" in targets or not has_code


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_imports_names_from_where_they_are_defined(path: Path) -> None:
    """Our own packages' `__init__` are for users, not for us."""
    packages = {"robotsgate"} | {
        f"robotsgate.{folder.name}" for folder in PACKAGE.iterdir() if folder.is_dir()
    }

    assert imports_of(path) & packages == set()


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.parent.name in PURE_FOLDERS], ids=name_of
)
def test_pure_module_imports_nothing_of_the_world(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(path)}

    assert roots & WORLD == set()


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("robotstxt", {"robotstxt", "errors"}),
        ("caching", {"caching", "robotstxt", "errors"}),
        ("stores", {"stores", "caching", "robotstxt", "errors", "_clock"}),
        ("fetching", {"fetching", "caching", "robotstxt", "errors", "_clock"}),
    ],
)
def test_folder_imports_only_what_lies_below_it(folder: str, allowed: set[str]) -> None:
    imported = {
        name.split(".")[1]
        for path in (PACKAGE / folder).rglob("*.py")
        for name in imports_of(path)
        if name.startswith("robotsgate.")
    }

    assert imported <= allowed


def test_nothing_imports_what_is_for_tests() -> None:
    importers = [
        name_of(path) for path in MODULES if "robotsgate.testing" in imports_of(path)
    ]

    assert importers == []


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name != "_clock.py"], ids=name_of
)
def test_only_the_clock_knows_the_time(path: Path) -> None:
    used = {
        ast.unparse(node)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
    }

    assert used & CLOCKS == set()


@pytest.fixture(scope="module")
def loaded_by_robotsgate() -> set[str]:
    return modules_after_import_of("import robotsgate")


@pytest.mark.parametrize(
    "name",
    [
        "trio",
        "hypothesis",
        "pytest",
        "respx",
        "robotsgate.testing",
        "trustme",
        "unittest",
    ],
)
def test_import_of_robotsgate_does_not_load(
    loaded_by_robotsgate: set[str], name: str
) -> None:
    assert name not in loaded_by_robotsgate


@pytest.mark.parametrize(
    "module",
    [
        "robotsgate.caching",
        "robotsgate.errors",
        "robotsgate.robotstxt",
        "robotsgate.stores",
        "robotsgate.testing",
    ],
)
def test_public_module_can_be_imported_first(module: str) -> None:
    loaded = modules_after_import_of(f"import {module}")

    assert module in loaded


def test_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
