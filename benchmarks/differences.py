"""Explains where our default dialect differs from Google's matcher.

    python -m benchmarks.differences --corpus DIR --verdicts FILE [--write PAGE]

DIR contains robots.txt files; FILE contains gzipped JSON lines with the keys file,
agent, url and google, which is the answer of Google's own code.
Counts how often each dialect differs from Google, and why `Dialect.RFC9309` does.
Prints each lookup for which `Dialect.GOOGLE` differs, or `Dialect.RFC9309` for a reason
that `points_of_difference` does not list, and exits with 1 if there are any.
`--write` updates the marked parts of docs/explanation/differences-from-google.md.

A difference is explained by a point if settling it makes the two agree, or by several
points if it takes all of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.page import replace_parts
from benchmarks.points_of_difference import (
    POINTS,
    REFUSED,
    SEVERAL,
    SITE,
    Point,
    Question,
    google,
    ours,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Real files have needed at most two; trying sets of three takes a second.
_MAX_REASONS = 3


@dataclass(slots=True, kw_only=True)
class Tally:
    """The results for a corpus.

    Attributes:
        files: the names of the files.
        questions: the number of lookups.
        google_differs: lookups for which `Dialect.GOOGLE` differs from Google.
        refused: how many agents contain no product token for `Dialect.RFC9309`.
        explained: how many differences each set of points explains.
        ambiguous: how many of these are also explained by another set of the same size.
        unexplained: differences that no set explains.
    """

    files: set[str] = field(default_factory=set)
    questions: int = 0
    google_differs: list[str] = field(default_factory=list)
    refused: int = 0
    explained: Counter[tuple[Point, ...]] = field(default_factory=Counter)
    ambiguous: int = 0
    unexplained: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """The counts as Markdown sentences."""
        differences = self.explained.total() + len(self.unexplained)
        return (
            f"The corpus has {self.questions:,} lookups in"
            f" {len(self.files):,} files.\n"
            f"`Dialect.GOOGLE` differs from Google on {len(self.google_differs):,} of"
            " them.\n"
            f"`Dialect.RFC9309` differs on {differences:,}, and raises an error for"
            f" {self.refused:,}.\n"
            f"{len(self.unexplained):,} of these differences are not in the tables.\n"
        )


def reasons(
    question: Question, points: Sequence[Point] = POINTS
) -> list[tuple[Point, ...]]:
    """The smallest sets of points that make the two agree when they are settled.

    Settling must not change our own answer. All sets have the same size and are in the
    order of `points`; there are none if the difference cannot be explained.
    """
    answer = ours(question)
    for size in range(1, _MAX_REASONS + 1):
        sets = []
        for some in combinations(points, size):
            settled = question
            for point in some:
                settled = point.settle(settled)
            if google(settled) is answer is ours(settled):
                sets.append(some)
        if sets:
            return sets
    return []


def tally(corpus: Path, verdicts: Iterable[str]) -> Tally:
    """Look up everything in both dialects, and explain the differences."""
    result = Tally()
    name, body = "", b""
    for line in verdicts:
        verdict = json.loads(line)
        if verdict["file"] != name:
            name = verdict["file"]
            body = (corpus / name).read_bytes()
            result.files.add(name)
        question = Question(body=body, agent=verdict["agent"], url=verdict["url"])
        _compare(question, verdict["google"], result, name)
    return result


def _compare(question: Question, expected: bool, result: Tally, file: str) -> None:  # noqa: FBT001 (an answer)
    shown = f"{file}: {question.agent!r} {question.url!r}"
    result.questions += 1
    if google(question) is not expected:
        result.google_differs.append(shown)
    answer = ours(question)
    if answer is None:
        result.refused += 1
    elif answer is not google(question):
        sets = reasons(question)
        if sets:
            result.explained[sets[0]] += 1
            result.ambiguous += len(sets) > 1
        else:
            result.unexplained.append(f"{shown}: Google {not answer}, RFC9309 {answer}")


def parts_of_page(result: Tally) -> dict[str, str]:
    """The marked parts of the page, by name."""
    settled = {point for points in result.explained for point in points}
    observed = [point for point in POINTS if point in settled]
    unmet = [_row(point.name, of=point) for point in POINTS if point not in settled]
    return {
        "counts": result.summary(),
        "classes": _classes(result, observed),
        "unmet": _head("difference") + "".join(unmet),
    }


def _classes(result: Tally, observed: list[Point]) -> str:
    rows = [
        _row(f"{number}. {point.name}", f"{result.explained[(point,)]:,}", of=point)
        for number, point in enumerate(observed, 1)
    ]
    several = sorted(
        ([observed.index(point) + 1 for point in points], count)
        for points, count in result.explained.items()
        if len(points) > 1
    )
    if several:
        total = f"{sum(count for _, count in several):,}"
        kinds = ", ".join(
            f"{' and '.join(map(str, numbers))} ({count:,}×)"
            for numbers, count in several
        )
        note = f"See rows {kinds}."
        cells = _cells(
            "several of these at once", total, *_example_cells(SEVERAL), note
        )
        rows.append(cells)
    if result.refused:
        rows.append(_row(REFUSED.name, f"{result.refused:,}", of=REFUSED))
    text = _head("difference", "lookups") + "".join(rows)
    if result.ambiguous:
        text += (
            f"\n{result.ambiguous:,} differences fit two rows;"
            " they are counted in the upper one.\n"
        )
    return text


def _head(*first: str) -> str:
    names = (*first, "robots.txt", "agent and URL", "Google", "we", "the standard")
    return _cells(*names) + "|" + "---|" * len(names) + "\n"


def _row(*first: str, of: Point) -> str:
    return _cells(*first, *_example_cells(of.example), of.standard)


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _example_cells(question: Question) -> Iterator[str]:
    """The cells for the robots.txt, the agent and URL, and the two answers."""
    path = question.url.removeprefix(SITE)
    shown = path if path.startswith("/") else question.url
    yield "<br>".join(map(_code, question.body.split(b"\n")))
    yield f"{_code(question.agent.encode())}<br>{_code(shown.encode())}"
    for answer in (google(question), ours(question)):
        yield {True: "yes", False: "no", None: "error"}[answer]


def _code(data: bytes) -> str:
    """`data` as code, with symbols for control characters and long gaps counted."""
    text = data.decode("utf-8", "backslashreplace")
    pictured = "".join(chr(0x2400 + ord(one)) if one < " " else one for one in text)
    return re.sub(" {9,}", lambda gap: f"` {len(gap[0]):,} spaces `", f"`{pictured}`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if anything is unexplained."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.differences",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--verdicts", type=Path, required=True)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args(arguments)
    with gzip.open(options.verdicts, "rt", encoding="utf-8") as verdicts:
        result = tally(options.corpus, verdicts)
    print(result.summary())
    for points, count in result.explained.most_common():
        print(f"{count:9,}  {' + '.join(point.name for point in points)}")
    for shown in (*result.google_differs, *result.unexplained):
        print(f"unexplained: {shown}")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(
            replace_parts(page, parts_of_page(result)), encoding="utf-8"
        )
    return 1 if result.google_differs or result.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
