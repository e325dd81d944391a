"""Generates the tables in the docs from the code and its docstrings.

python -m tests.reference_tables
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import robotsgate
from benchmarks.page import replace_parts
from robotsgate import Policy
from tests.faults import page as faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    Rows = Iterator[tuple[str, ...]]

_FOLDER = Path(__file__).parents[1] / "docs"
_INTEGRATIONS = Path(robotsgate.__file__).with_name("integrations")
_DIRECTIVE = re.compile(
    # The text below the directive describes names without a docstring.
    r"^\.\. (?:auto|py:)\w+:: robotsgate\.([\w.]+).*(?:\n   :.*)*(?:\n\n   (.+))?",
    re.MULTILINE,
)
_SPANS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
_PRESETS = ("google_today", "google_2021", "rfc9309", "strict")


def pages() -> Iterator[tuple[Path, str]]:
    """The pages with tables, and their text with new tables."""
    for name, tables in {
        "reference/api/policy.md": {
            "fields": _policy_rows(),
            "presets": _preset_rows(),
        },
        "reference/api/index.md": {
            page.stem: _name_rows(page)
            for page in (_FOLDER / "reference/api").glob("*.md")
            if page.stem != "index"
        },
        "explanation/what-can-go-wrong.md": faults.tables(),
    }.items():
        page = _FOLDER / name
        text = page.read_text(encoding="utf-8")
        for key, rows in tables.items():
            if f"<!-- begin: {key} -->" not in text:
                raise LookupError(f"{name} has no place for the table {key!r}")
            text = replace_parts(text, {key: _table(rows)})
        yield page, text


def _table(rows: Rows) -> str:
    header, *others = rows
    ruler = ["---"] * len(header)
    lines = (header, ruler, *others)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _policy_rows() -> Rows:
    """The fields of `Policy`: type and bounds, default, and meaning."""
    yield "field", "type", "default", "meaning"
    meanings = field_comments(Policy)
    for field in dataclasses.fields(Policy):
        yield (
            f"`{field.name}`",
            _bounded_type(field),
            _readable(field.name, field.default),
            meanings[field.name],
        )


def _preset_rows() -> Rows:
    """The fields in which each preset differs from the defaults."""
    yield "policy", "differs from `Policy()` in"
    for preset in _PRESETS:
        policy = getattr(Policy, preset)()
        yield (
            f"`Policy.{preset}()`",
            ", ".join(
                f"`{field.name}`: {_readable(field.name, value)}"
                for field in dataclasses.fields(Policy)
                if (value := getattr(policy, field.name)) != field.default
            ),
        )


def _name_rows(page: Path) -> Rows:
    """The names on an API page, with links to their sections."""
    yield "name", "what it is"
    _, *sections = page.read_text(encoding="utf-8").split("\n## ")
    for section in sections:
        title = section.partition("\n")[0].lower()
        anchor = re.sub(r"[^\w -]", "", title).replace(" ", "-")
        for path, text in _DIRECTIVE.findall(section):
            sentence = text or _docstring(path).partition("\n\n")[0]
            link = f"[`{path}`]({page.name}#{anchor})"
            yield link, " ".join(sentence.split())


def _docstring(path: str) -> str:
    """The docstring of `robotsgate.PATH`; integrations are read, not imported."""
    module, _, name = path.rpartition(".")
    if not module.startswith("integrations."):
        home = import_module(f"robotsgate.{module}".rstrip("."))
        return inspect.getdoc(getattr(home, name)) or ""
    file = _INTEGRATIONS / f"{module.removeprefix('integrations.')}.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            text = ast.get_docstring(node)
            if text:
                return text
    raise LookupError(path)


def field_comments(kind: type[Any]) -> dict[str, str]:
    """The docstrings below the fields of a class at the top level."""
    home = import_module(f"robotsgate.{robotsgate._HOMES[kind.__name__]}")
    [body] = (
        node.body
        for node in ast.parse(inspect.getsource(home)).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    comments: dict[str, str] = {}
    for one, other in pairwise(body):
        match one, other:
            case (
                ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(ast.Constant(str(text))),
            ):
                comments[name] = " ".join(text.split())
    return comments


def _bounded_type(field: dataclasses.Field[Any]) -> str:
    """The type of a field, and its bounds if it is a number."""
    kind = re.sub(r"[\w.]+\.", "", inspect.formatannotation(field.type))
    text = " or ".join(f"`{each}`" for each in kind.split(" | "))
    if "float" in text or "int" in text:
        lowest = field.metadata.get("lowest", 0)
        text += " > 0" if 0 < lowest < 1 else f" ≥ {lowest}"
        for name in field.metadata.get("at_most", ()):
            text += f", ≤ `{name}`"
    return text


def _readable(name: str, value: object) -> str:
    """A field's value in readable form."""
    if isinstance(value, enum.Enum):
        return f"`{value.name}`"
    if isinstance(value, float) and name != "retry_factor":
        for seconds, unit in _SPANS:
            count = value / seconds
            if count > 1 and count == int(count):
                return f"{count:.0f} {unit}"
        return f"{value:.0f} seconds" if value else "0"
    if isinstance(value, bool) or value is None:
        return f"`{value}`"
    if isinstance(value, (int, float)):
        return f"{value:,.0f}"
    return f"`{value!r}`"


if __name__ == "__main__":
    for page, text in pages():
        page.write_text(text, encoding="utf-8")
