"""Public names exist, are documented, and are on the API pages."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

import robotsgate
from robotsgate import events, politeness, robotstxt, stores

MODULES = (
    "robotsgate",
    "robotsgate.archive",
    "robotsgate.caching",
    "robotsgate.errors",
    "robotsgate.events",
    "robotsgate.fetching",
    "robotsgate.page",
    "robotsgate.politeness",
    "robotsgate.robotstxt",
    "robotsgate.stores",
    "robotsgate.testing",
    "robotsgate.urls",
)
API_PAGES = sorted(Path(__file__).parents[1].glob("docs/reference/api/*.md"))
_DIRECTIVE = re.compile(r"\.\. (?:auto(?:class|exception|function)|py:\w+):: ([\w.]+)")

# Unions of types, which have no docstring of their own.
UNIONS = (
    robotsgate.HeadersLike,
    events.CheckerEvent,
    events.GateEvent,
    events.LedgerEvent,
)


# Aliases, which have no docstring of their own either.
ALIASES = (*UNIONS, stores.Change, stores.TimedChange)


def exports_of(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return names


def is_documented(value: object) -> bool:
    return bool(inspect.getdoc(value))


PUBLIC = {
    name: getattr(module, name)
    for module in (robotsgate, events, politeness, robotstxt, stores)
    for name in exports_of(module.__name__)
}
CLASSES = {name: value for name, value in PUBLIC.items() if isinstance(value, type)}

MEMBERS = [
    (kind, name)
    for kind in CLASSES.values()
    for name, value in sorted(vars(kind).items())
    if not name.startswith("_")
    and (
        callable(value)
        or isinstance(value, (classmethod, staticmethod, property))
        or type(value).__name__ == "cached_property"
    )
    and not issubclass(kind, enum.Enum)
]


@pytest.mark.parametrize("module", MODULES)
def test_exports_exist(module: str) -> None:
    imported = importlib.import_module(module)

    missing = [name for name in exports_of(module) if not hasattr(imported, name)]

    assert missing == []


@pytest.mark.parametrize("module", MODULES)
def test_exports_include_every_public_class_of_the_module(module: str) -> None:
    imported = importlib.import_module(module)

    public = {
        name
        for name, value in vars(imported).items()
        if isinstance(value, type)
        and not name.startswith("_")
        and value.__module__.startswith("robotsgate")
    }

    ours = {"JSONValue", "Origin", *robotsgate._EXTRA_HOMES}
    assert public - set(exports_of(module)) <= ours


def test_public_names_are_documented() -> None:
    missing = [
        name
        for name, value in PUBLIC.items()
        if value not in ALIASES and not is_documented(value)
    ]

    assert missing == []


@pytest.mark.parametrize("union", UNIONS, ids=str)
def test_every_member_of_a_union_is_public(union: object) -> None:
    parts = get_args(union)
    ours = {part for part in parts if part.__module__.startswith("robotsgate")}

    assert ours <= set(CLASSES.values())


def test_public_members_are_documented() -> None:
    missing = {
        (kind, name)
        for kind, name in MEMBERS
        if not is_documented(inspect.getattr_static(kind, name))
    }

    # This is the system's own function; Clock.now documents it.
    assert missing <= {(robotsgate.SystemClock, "now")}


def test_members_are_collected() -> None:
    members = {f"{kind.__name__}.{name}" for kind, name in MEMBERS}

    assert {
        "RobotsChecker.can_fetch",
        "RobotsChecker.stats",
        "RobotsTxt.parse",
        "RobotsTxt.sitemaps",
        "Store.get",
    } <= members


def test_dataclass_fields_are_documented() -> None:
    undocumented = [
        f"{kind.__name__}.{field}"
        for kind in CLASSES.values()
        for field in getattr(kind, "__dataclass_fields__", ())
        if f"{field}:" not in (inspect.getdoc(kind) or "")
        and field not in fields_with_docstring(kind)
    ]

    assert undocumented == []


def fields_with_docstring(kind: type) -> list[str]:
    """The fields of a dataclass that are followed by a docstring."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    return [
        ast.unparse(field.target)
        for field, comment in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(comment, ast.Expr)
        and isinstance(comment.value, ast.Constant)
    ]


def api_sections() -> list[str]:
    return [
        section
        for page in API_PAGES
        for section in page.read_text(encoding="utf-8").split("\n## ")
        if _DIRECTIVE.search(section)
    ]


def documented_names() -> list[str]:
    names = [name for each in api_sections() for name in _DIRECTIVE.findall(each)]
    return [name for name in names if name.startswith("robotsgate.")]


def test_every_name_on_the_api_pages_exists() -> None:
    pytest.importorskip("crawlee", reason="crawlee is not installed")
    missing = []
    for path in documented_names():
        module, _, name = path.rpartition(".")
        if not hasattr(importlib.import_module(module), name):
            missing.append(path)

    assert documented_names()
    assert missing == []


def test_every_api_section_has_an_example() -> None:
    missing = [each for each in api_sections() if "```python" not in each]

    assert missing == []


@pytest.mark.parametrize(
    "module",
    [
        "robotsgate",
        "robotsgate.caching",
        "robotsgate.events",
        "robotsgate.fetching",
        "robotsgate.integrations.aiohttp",
        "robotsgate.integrations.crawl4ai",
        "robotsgate.integrations.hops",
        "robotsgate.integrations.crawlee",
        "robotsgate.integrations.httpx",
        "robotsgate.integrations.requests",
        "robotsgate.integrations.scrapy",
        "robotsgate.integrations.scrapy_playwright",
        "robotsgate.integrations.warc",
        "robotsgate.page",
        "robotsgate.sync",
    ],
)
def test_every_public_name_is_on_an_api_page(module: str) -> None:
    if module.endswith("crawlee"):
        pytest.importorskip("crawlee", reason="crawlee is not installed")
    documented = {path.rpartition(".")[2] for path in documented_names()}
    missing = set(exports_of(module)) - documented

    assert missing <= {"__version__"}
