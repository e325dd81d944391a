"""The tables in the page `what-can-go-wrong`: a row per outcome."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.faults.matrix import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.fault import Fault, Group

_SPELLING = ", written "


def tables() -> dict[str, Iterator[tuple[str, ...]]]:
    """The rows of each table, by the name that marks its place in the page."""
    return {f"faults {group.name}": _rows(group) for group in GROUPS}


def _rows(group: Group) -> Iterator[tuple[str, ...]]:
    """The faults with the same effect, for the same reason, share a row."""
    yield "the server …", "allowed", "why"
    outcomes: defaultdict[tuple[str, str], list[Fault]] = defaultdict(list)
    for fault in group.faults:
        access, reason = fault.access.value, fault.reason.value
        why = f"`{access}`" if access == reason else f"`{access}`, `{reason}`"
        outcomes[fault.effect.value, why].append(fault)
    for outcome, faults in outcomes.items():
        yield _names(faults), *outcome


def _names(faults: list[Fault]) -> str:
    """What the servers do, one below the other; spellings share a line."""
    spellings: dict[str, list[str]] = {}
    for fault in faults:
        name, _, spelling = fault.name.partition(_SPELLING)
        spellings.setdefault(name, []).append(spelling)
    return "<br>".join(
        name + _SPELLING + ", ".join(filter(None, several)) if any(several) else name
        for name, several in spellings.items()
    ).replace("|", "\\|")
