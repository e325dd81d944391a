"""Directives that write tables of the reference from the code and its docstrings."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from typing import TYPE_CHECKING, Any, get_args

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import robotsgate
from robotsgate import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils import nodes
    from sphinx.application import Sphinx

_SPANS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
_PRESETS = ("google_today", "google_2021", "rfc9309", "strict")


class _Table(SphinxDirective):
    """A table; its argument, if there is one, names what it is about."""

    def run(self) -> list[nodes.Node]:
        header, *rows = self.rows()
        ruler = ["---"] * len(header)
        lines = [f"| {' | '.join(row)} |" for row in (header, ruler, *rows)]
        return self.parse_text_to_nodes("\n".join(lines))

    def rows(self) -> Iterator[tuple[str, ...]]:
        raise NotImplementedError


class _PolicyTable(_Table):
    """Each field of `Policy`, its type and bounds, its default, what it decides."""

    def rows(self) -> Iterator[tuple[str, ...]]:
        yield "field", "type", "default", "meaning"
        meanings = _comments(Policy)
        for field in dataclasses.fields(Policy):
            yield (
                f"`{field.name}`",
                _bounded_type(field),
                _shown(field.name, field.default),
                meanings[field.name],
            )


class _PresetTable(_Table):
    """The fields in which a ready-made policy differs from the defaults."""

    def rows(self) -> Iterator[tuple[str, ...]]:
        yield "policy", "differs from `Policy()` in"
        for preset in _PRESETS:
            policy = getattr(Policy, preset)()
            yield (
                f"`Policy.{preset}()`",
                ", ".join(
                    f"`{field.name}`: {_shown(field.name, value)}"
                    for field in dataclasses.fields(Policy)
                    if (value := getattr(policy, field.name)) != field.default
                ),
            )


class _MemberTable(_Table):
    """The members of an enum."""

    required_arguments = 1

    def rows(self) -> Iterator[tuple[str, ...]]:
        kind: type[enum.Enum] = getattr(robotsgate, self.arguments[0])
        meanings = _comments(kind)
        yield "member", "value", "meaning"
        for member in kind:
            meaning = meanings.get(member.name, "")
            yield f"`{member.name}`", f"`{member.value}`", meaning


class _EventTable(_Table):
    """The events of a union of their classes."""

    required_arguments = 1

    def rows(self) -> Iterator[tuple[str, ...]]:
        yield "event", "tells", "fields"
        for kind in get_args(getattr(robotsgate, self.arguments[0])):
            sentence = (inspect.getdoc(kind) or "").partition("\n\n")[0]
            fields = ", ".join(f"`{each.name}`" for each in dataclasses.fields(kind))
            name = f"{{py:class}}`~robotsgate.{kind.__name__}`"
            yield name, " ".join(sentence.split()), fields


class _FieldTable(_Table):
    """The fields of a dataclass."""

    required_arguments = 1

    def rows(self) -> Iterator[tuple[str, ...]]:
        yield "field", "meaning"
        for name, meaning in _attributes(
            getattr(robotsgate, self.arguments[0])
        ).items():
            yield f"`{name}`", meaning


def _comments(kind: type[Any]) -> dict[str, str]:
    """The docstrings below the fields or members of `kind`."""
    comments = ModuleAnalyzer.for_module(kind.__module__).find_attr_docs()
    return {
        name: " ".join(" ".join(lines).split())
        for (owner, name), lines in comments.items()
        if owner == kind.__name__
    }


def _bounded_type(field: dataclasses.Field[Any]) -> str:
    """The type of a field of `Policy`, and its bounds if it is a number."""
    text = " or ".join(f"`{each}`" for each in str(field.type).split(" | "))
    if "float" in text or "int" in text:
        lowest = field.metadata.get("lowest", 0)
        text += " > 0" if 0 < lowest < 1 else f" ≥ {lowest}"
        for name in field.metadata.get("at_most", ()):
            text += f", ≤ `{name}`"
    return text


def _attributes(kind: type[Any]) -> dict[str, str]:
    """What the docstring of `kind` says about each attribute."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    entries = re.findall(
        r"^    (\w+): (.+?)(?=^    \w+: |\Z)", section, re.DOTALL | re.MULTILINE
    )
    return {name: " ".join(text.split()) for name, text in entries}


def _shown(name: str, value: object) -> str:
    """The default of a field, as a person would write it."""
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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("policy-table", _PolicyTable)
    app.add_directive("preset-table", _PresetTable)
    app.add_directive("member-table", _MemberTable)
    app.add_directive("event-table", _EventTable)
    app.add_directive("field-table", _FieldTable)
    return {"parallel_read_safe": True}
