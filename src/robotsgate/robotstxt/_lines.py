"""Tells what each line of a robots.txt is, for programs that show the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.robotstxt._model import Line, LineKind
from robotsgate.robotstxt._octets import lower, readable

if TYPE_CHECKING:
    from robotsgate.robotstxt._dialect import Grammar


def lines(text: str, grammar: Grammar) -> tuple[Line, ...]:
    """The lines of a file; no line follows the last line end.

    Args:
        text: the file as latin-1, one character for each byte; lines end with LF.
        grammar: the dialect's way to read it.
    """
    if not text:
        return ()
    whole_lines = text.removesuffix("\n").split("\n")
    return tuple(
        Line(number=number, text=readable(line), kind=_kind(counted, grammar))
        for number, (line, counted) in enumerate(
            zip(whole_lines, grammar.counted_text(text).split("\n"), strict=False), 1
        )
    )


def _kind(line: str, grammar: Grammar) -> LineKind:
    record, number_sign, _ = line.partition("#")
    if not record.strip(grammar.white_space):
        return LineKind.COMMENT if number_sign else LineKind.BLANK
    key, colon, _ = record.partition(":")
    if not colon:
        key, _ = grammar.split_without_colon(record) or ("", "")
    key = lower(key.strip(grammar.white_space))
    return LineKind(grammar.field(key).value) if key else LineKind.NO_RECORD
