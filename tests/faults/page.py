"""The tables in the page: expected outcomes, and measurements from one run."""

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

# Separates the reason from the error, which is in the same cell.
_BELOW = "<br>"
_MAX_CHARACTERS = 90
_VARYING = (
    (re.compile(r"\[SSL: \w+\] "), ""),
    (re.compile(r" \(_ssl\.c:\d+\)"), ""),
    (re.compile(r" \('[0-9a-f.:]+', \d+\)"), ""),
    (re.compile(r"(//[\w.]+):\d{4,5}\b"), r"\1"),
)

_KIBIBYTE = 2**10
_MEBIBYTE = 2**20


def table(group: Group, observations: Iterable[Observation]) -> str:
    """The table for `group`, with one observation per fault."""
    rows = [
        _row(fault, observation)
        for fault, observation in zip(group.faults, observations, strict=True)
    ]
    ruler = "|" + "---|" * 3 + "---:|" * 3
    return "\n".join([_line(_HEADINGS), ruler, *map(_line, rows)])


def expected_cells(fault: Fault) -> tuple[str, str, str]:
    """The cells of `fault` that are the same in every run."""
    access, reason = fault.access.value, fault.reason.value
    why = f"`{access}`" if access == reason else f"`{access}`, `{reason}`"
    return _cell(fault.name), fault.effect.value, why


def rows_of(page: str, group: Group) -> Iterator[tuple[str, str, str]]:
    """The first three cells of each row in `page`'s table for `group`."""
    _, _, rest = page.partition(f"<!-- begin: faults {group.name} -->")
    marked, _, _ = rest.partition("<!-- end:")
    _, _, *lines = marked.strip().splitlines()
    for line in lines:
        name, effect, why, *_ = line.strip("| ").split(" | ")
        yield name, effect, why.partition(_BELOW)[0]


def _row(fault: Fault, observation: Observation) -> tuple[str, ...]:
    name, effect, why = expected_cells(fault)
    error = observation.verdict.error
    if error is not None:
        why += f"{_BELOW}{_cell(_shortened(error))}"
    return (
        name,
        effect,
        why,
        _time(observation.seconds),
        _size(observation.bytes_taken),
        _size(observation.memory),
    )


def _shortened(error: str) -> str:
    """`error` without parts that vary between runs, and cut if it is too long."""
    for pattern, text in _VARYING:
        error = pattern.sub(text, error)
    if len(error) > _MAX_CHARACTERS:
        error = f"{error[: error.rindex(' ', 0, _MAX_CHARACTERS)]} …"
    return error


def _time(seconds: float) -> str:
    return f"{seconds * 1_000:.0f} ms"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _size(size: int) -> str:
    if size >= _MEBIBYTE:
        return f"{size / _MEBIBYTE:.1f} MiB"
    if size >= _KIBIBYTE:
        return f"{size / _KIBIBYTE:.0f} KiB"
    return f"{size}"
