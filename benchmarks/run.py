"""One run of the suite: what was measured, where, and how it is kept in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.report import Bar, Table, bars_table, markdown, missed

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The figures of a run.

    Attributes:
        surroundings: pairs (what, which) about the machine, the packages and the
            files.
        tables: one or more of each measurement.
        bars: what was promised.
    """

    surroundings: Mapping[str, str]
    tables: tuple[Table, ...]
    bars: tuple[Bar, ...]

    def as_json(self) -> str:
        """All of it, for `from_json`."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Run:
        """A run that `as_json` wrote."""
        raw: dict[str, Any] = json.loads(text)
        return cls(
            surroundings=raw["surroundings"],
            tables=tuple(
                Table(
                    name=table["name"],
                    title=table["title"],
                    columns=tuple(table["columns"]),
                    rows=tuple(map(tuple, table["rows"])),
                    notes=tuple(table["notes"]),
                )
                for table in raw["tables"]
            ),
            bars=tuple(Bar(**bar) for bar in raw["bars"]),
        )

    def parts(self, prefix: str = "") -> dict[str, str]:
        """Markdown for the parts of a page, each name behind `prefix`."""
        about = [f"- {what}: {which}" for what, which in self.surroundings.items()]
        parts = {f"table {table.name}": markdown(table) for table in self.tables}
        if self.bars:
            parts["table bars"] = markdown(bars_table(self.bars))
            parts["missed"] = missed(self.bars)
        parts["surroundings"] = "\n".join(about)
        return {prefix + name: text for name, text in parts.items()}
