"""The tables of the page: what is the same in each run, and what was measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.faults.fault import Fault, Group, Observation

_HEADINGS = (
    "what the server does",
    "what may be fetched",
    "why",
    "time",
    "bytes taken",
    "memory",
)

# What the verdict says stands below the reason, in the same cell.
_BELOW = "<br>"
_MOST_CHARACTERS = 90
_CHANGING = (
    (re.compile(r"\[SSL: \w+\] "), ""),
    (re.compile(r" \(_ssl\.c:\d+\)"), ""),
    (re.compile(r" \('[0-9a-f.:]+', \d+\)"), ""),
    (re.compile(r"(//[\w.]+):\d{4,5}\b"), r"\1"),
)

_KIBIBYTE = 2**10
_MEBIBYTE = 2**20


def table(group: Group, observations: Iterable[Observation]) -> str:
    """The table of a group, from one observation of each fault."""
    rows = [
        _row(fault, seen)
        for fault, seen in zip(group.faults, observations, strict=True)
    ]
    ruler = "|" + "---|" * 3 + "---:|" * 3
    return "\n".join([_line(_HEADINGS), ruler, *map(_line, rows)])


def promised(fault: Fault) -> tuple[str, str, str]:
    """The cells of a fault that are the same in each run."""
    access, reason = fault.access.value, fault.reason.value
    why = f"`{access}`" if access == reason else f"`{access}`, `{reason}`"
    return _cell(fault.name), fault.effect.value, why


def rows_of(page: str, group: Group) -> Iterator[tuple[str, str, str]]:
    """The first three cells of each row that `page` has for `group`."""
    _, _, behind = page.partition(f"<!-- begin: faults {group.name} -->")
    marked, _, _ = behind.partition("<!-- end:")
    _, _, *lines = marked.strip().splitlines()
    for line in lines:
        name, effect, why, *_ = line.strip("| ").split(" | ")
        yield name, effect, why.partition(_BELOW)[0]


def _row(fault: Fault, seen: Observation) -> tuple[str, ...]:
    name, effect, why = promised(fault)
    error = seen.verdict.error
    if error is not None:
        why += f"{_BELOW}{_cell(_first_words(error))}"
    return (name, effect, why, _time(seen.seconds), *map(_size, _sizes(seen)))


def _sizes(seen: Observation) -> tuple[int, int]:
    return seen.bytes_taken, seen.memory


def _first_words(error: str) -> str:
    """`error` without what differs from run to run, and not too long."""
    for pattern, text in _CHANGING:
        error = pattern.sub(text, error)
    if len(error) > _MOST_CHARACTERS:
        error = f"{error[: error.rindex(' ', 0, _MOST_CHARACTERS)]} …"
    return error


def _time(seconds: float) -> str:
    return f"{seconds * 1_000:.0f} ms"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _size(size: int) -> str:
    """`size` for people."""
    if size >= _MEBIBYTE:
        return f"{size / _MEBIBYTE:.1f} MiB"
    if size >= _KIBIBYTE:
        return f"{size / _KIBIBYTE:.0f} KiB"
    return f"{size}"
