"""The tables in the page: a row per outcome, and measurements from one run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.faults.fault import Fault, Group, Observation

_HEADINGS = ("the server …", "allowed", "why", "time", "bytes", "memory")

_BELOW = "<br>"
_SPELLING = ", written "

_KIBIBYTE = 2**10
_MEBIBYTE = 2**20


def table(group: Group, observations: Iterable[Observation]) -> str:
    """The table for `group`, with one observation per fault."""
    names = [fault.name for fault in group.faults]
    observed = dict(zip(names, observations, strict=True))
    rows = [
        (_names(faults), *outcome, *_costs([observed[fault.name] for fault in faults]))
        for outcome, faults in _by_outcome(group).items()
    ]
    ruler = "|" + "---|" * 3 + "---:|" * 3
    return "\n".join([_line(_HEADINGS), ruler, *map(_line, rows)])


def expected_rows(group: Group) -> list[tuple[str, str, str]]:
    """The cells of each row that are the same in every run."""
    return [
        (_names(faults), *outcome) for outcome, faults in _by_outcome(group).items()
    ]


def rows_of(page: str, group: Group) -> Iterator[tuple[str, str, str]]:
    """The first three cells of each row in `page`'s table for `group`."""
    _, _, rest = page.partition(f"<!-- begin: faults {group.name} -->")
    marked, _, _ = rest.partition("<!-- end:")
    _, _, *lines = marked.strip().splitlines()
    for line in lines:
        names, effect, why, *_ = line.strip("| ").split(" | ")
        yield names, effect, why


def _by_outcome(group: Group) -> dict[tuple[str, str], list[Fault]]:
    """The faults with the same effect, for the same reason."""
    faults: defaultdict[tuple[str, str], list[Fault]] = defaultdict(list)
    for fault in group.faults:
        access, reason = fault.access.value, fault.reason.value
        why = f"`{access}`" if access == reason else f"`{access}`, `{reason}`"
        faults[fault.effect.value, why].append(fault)
    return faults


def _names(faults: list[Fault]) -> str:
    """What the servers do, one below the other; spellings share a line."""
    spellings: dict[str, list[str]] = {}
    for fault in faults:
        name, _, spelling = fault.name.partition(_SPELLING)
        spellings.setdefault(name, []).append(spelling)
    return _BELOW.join(
        name + _SPELLING + ", ".join(filter(None, several)) if any(several) else name
        for name, several in spellings.items()
    ).replace("|", "\\|")


def _costs(observations: list[Observation]) -> tuple[str, str, str]:
    """The highest costs."""
    return (
        f"{max(each.seconds for each in observations) * 1_000:.0f} ms",
        _size(max(each.bytes_taken for each in observations)),
        _size(max(each.memory for each in observations)),
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _size(size: int) -> str:
    if size >= _MEBIBYTE:
        return f"{size / _MEBIBYTE:.1f} MiB"
    if size >= _KIBIBYTE:
        return f"{size / _KIBIBYTE:.0f} KiB"
    return f"{size}"
