"""Public names are exported, and are on the API pages; ruff checks their docstrings."""

from __future__ import annotations

import ast
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
    "robotsgate", "robotsgate.archive", "robotsgate.caching", "robotsgate.errors",
    "robotsgate.events", "robotsgate.fetching", "robotsgate.page",
    "robotsgate.politeness", "robotsgate.robotstxt", "robotsgate.stores",
    "robotsgate.testing", "robotsgate.urls",
)  # fmt: skip
ON_API_PAGES = (
    "robotsgate", "robotsgate.caching", "robotsgate.events", "robotsgate.fetching",
    "robotsgate.page", "robotsgate.robotparser", "robotsgate.sync", *(
        f"robotsgate.integrations.{name}"
        for name in ("aiohttp", "crawl4ai", "hops", "crawlee", "httpx", "requests",
                     "scrapy", "scrapy_playwright", "warc")
    ),
)  # fmt: skip
API_PAGES = sorted(Path(__file__).parents[1].glob("docs/reference/api/*.md"))
_DIRECTIVE = re.compile(r"\.\. (?:auto(?:class|exception|function)|py:\w+):: ([\w.]+)")

# Unions of types, which have no docstring of their own.
UNIONS = (
    robotsgate.HeadersLike,
    events.CheckerEvent,
    events.GateEvent,
    events.LedgerEvent,
)


def exports_of(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return names


PUBLIC = {
    name: getattr(module, name)
    for module in (robotsgate, events, politeness, robotstxt, stores)
    for name in exports_of(module.__name__)
}
CLASSES = {name: value for name, value in PUBLIC.items() if isinstance(value, type)}


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


@pytest.mark.parametrize("union", UNIONS, ids=str)
def test_every_member_of_a_union_is_public(union: object) -> None:
    parts = get_args(union)
    ours = {part for part in parts if part.__module__.startswith("robotsgate")}

    assert ours <= set(CLASSES.values())


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


@pytest.mark.parametrize("module", ON_API_PAGES)
def test_every_public_name_is_on_an_api_page(module: str) -> None:
    if module.endswith("crawlee"):
        pytest.importorskip("crawlee", reason="crawlee is not installed")
    documented = {path.rpartition(".")[2] for path in documented_names()}
    missing = set(exports_of(module)) - documented

    assert missing <= {"__version__"}
