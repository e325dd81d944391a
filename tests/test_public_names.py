"""Public names are exported, and are on the API pages; ruff checks their docstrings."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pickle
import re
from pathlib import Path
from types import FunctionType
from typing import get_args, get_type_hints

import pytest

import robotsgate
from robotsgate import ArchivedResponse, Origin, Policy, RobotsTxt, events
from tests.reference_tables import field_comments

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
    name: getattr(importlib.import_module(module), name)
    for module in MODULES
    for name in exports_of(module)
}
CLASSES = {name: value for name, value in PUBLIC.items() if isinstance(value, type)}
VALUES = {
    kind
    for kind in CLASSES.values()
    if issubclass(kind, enum.Enum)
    or dataclasses.is_dataclass(kind)
    or hasattr(kind, "_fields")
}
# These check their fields.
CHECKED_VALUES = {
    ArchivedResponse: ArchivedResponse(200, body=b"User-agent: *"),
    Origin: Origin.from_url("https://example.com"),
    Policy: Policy.strict(),
}
# Their annotations use names that only type checkers import.
WITHOUT_HINTS = {
    "ArchivedResponse", "CheckResult", "CheckerStats", "FetchedResponse",
    "PageDirectives", "RobotsChecker", "RobotsTxtFetched", "ScheduledTurn",
    "SystemClock", "URLSkipped", "Verdict",
}  # fmt: skip


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


@pytest.mark.parametrize("module", sorted({*MODULES, *ON_API_PAGES}))
def test_classes_and_functions_are_shown_in_their_public_module(module: str) -> None:
    if module.endswith("crawlee"):
        pytest.importorskip("crawlee", reason="crawlee is not installed")
    imported = importlib.import_module(module)
    names = {*exports_of(module), *vars(imported).get("_EXTRA_HOMES", ())}
    values = {name: getattr(imported, name) for name in names}

    shown = {
        name: value.__module__
        for name, value in values.items()
        if isinstance(value, type | FunctionType)
    }

    assert shown == {
        name: "robotsgate"
        if getattr(robotsgate, name, None) is values[name]
        else module
        for name in shown
    }


def test_getsource_finds_functions_and_never_the_wrong_class() -> None:
    wrong = {
        name
        for name, value in PUBLIC.items()
        if isinstance(value, type | FunctionType)
        and not re.search(rf"\b(class|def) {name}\b", source_of(value))
    }

    assert wrong == set()


def source_of(value: type | FunctionType) -> str:
    """The source; only a class may have none."""
    try:
        return inspect.getsource(value)
    except OSError:
        assert isinstance(value, type)
        return f"class {value.__name__}"


def test_annotations_can_be_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pydantic does to create values from a file."""
    for name in robotsgate.__all__:
        monkeypatch.delitem(vars(robotsgate), name, raising=False)
    failed = set()
    for name, kind in CLASSES.items():
        try:
            get_type_hints(kind)
        except (NameError, TypeError):
            failed.add(name)

    assert failed <= WITHOUT_HINTS


@pytest.mark.parametrize(
    "kind", sorted(VALUES, key=str), ids=lambda kind: kind.__name__
)
def test_pickled_value_is_equal_and_names_no_private_module(kind: type) -> None:
    value = value_of(kind)

    pickled = pickle.dumps(value)

    assert pickle.loads(pickled) == value  # noqa: S301 (our own bytes)
    assert re.findall(rb"robotsgate[\w.]*\._", pickled) == []


def value_of(kind: type) -> object:
    """A value whose fields contain their names, or the members of an enum."""
    if issubclass(kind, enum.Enum):
        return list(kind)
    if kind in CHECKED_VALUES:
        return CHECKED_VALUES[kind]
    if hasattr(kind, "_fields"):
        return kind(*kind._fields)
    return kind(**{field.name: field.name for field in dataclasses.fields(kind)})


def test_pickled_file_has_the_same_lines_and_rules() -> None:
    robots = RobotsTxt.parse("User-agent: *\nDisallow: /private\n\nNoindex: /x")

    restored: RobotsTxt = pickle.loads(pickle.dumps(robots))  # noqa: S301 (our own bytes)

    assert restored.as_dict() == robots.as_dict()
    assert not restored.can_fetch("ExampleBot", "/private")


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
        and field not in field_comments(kind)
    ]

    assert undocumented == []


def documented_names() -> list[str]:
    pages = [page.read_text(encoding="utf-8") for page in API_PAGES]
    names = [name for each in pages for name in _DIRECTIVE.findall(each)]
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


def test_every_api_page_has_an_example() -> None:
    missing = [
        page.name
        for page in API_PAGES
        if page.name != "index.md"
        and "```python" not in page.read_text(encoding="utf-8")
    ]

    assert missing == []


@pytest.mark.parametrize("module", ON_API_PAGES)
def test_every_public_name_is_on_an_api_page(module: str) -> None:
    if module.endswith("crawlee"):
        pytest.importorskip("crawlee", reason="crawlee is not installed")
    documented = {path.rpartition(".")[2] for path in documented_names()}
    missing = set(exports_of(module)) - documented

    assert missing <= {"__version__"}
