"""Plot what is allowed on each day of a long outage, under four policies.

    pip install '.[examples]'
    python examples/long_outage.py

The days pass instantly, on a fake clock and a fake web. long_outage.png has a row for
each combination of policy and failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import anyio
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from robotsgate import Policy, RobotsChecker
from robotsgate.testing import FakeSite, ManualClock

AGENT = "ExampleBot"
SHOP = "https://shop.example"
RULES = "User-agent: *\nDisallow: /basket"

DAY = 86_400
QUESTIONS_A_DAY = 4
DAYS = 35

POLICIES = {
    "Policy()": Policy(),
    "Policy.google_today()": Policy.google_today(),
    "Policy.google_2021()": Policy.google_2021(),
    "Policy.strict()": Policy.strict(),
}
FAILURES: dict[str, int | OSError] = {
    "500": 500,
    "429": 429,
    "no connection": OSError("no connection"),
}

# Keyed by whether /shoes and /basket are allowed; RULES disallows only /basket.
MEANINGS = {
    (True, False): "the copy",
    (False, False): "nothing",
    (True, True): "everything",
}
COLOURS = {"the copy": "#2a78d6", "nothing": "#9a9890", "everything": "#e09a24"}
PICTURE = Path("long_outage.png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Consecutive checks with the same results; `begin` and `end` are in days."""

    begin: float
    end: float
    meaning: str


async def outage(policy: Policy, failure: int | OSError) -> list[Span]:
    """What is allowed from the day the shop starts to fail."""
    clock, site = ManualClock(), FakeSite()
    site.serve(SHOP, RULES)
    meanings: list[str] = []
    async with RobotsChecker(client=site, clock=clock, policy=policy) as checker:
        await checker.can_fetch(AGENT, f"{SHOP}/shoes")
        if isinstance(failure, int):
            site.serve(SHOP, status=failure)
        else:
            site.fail(SHOP, failure)
        clock.advance(DAY)  # now the file is stale
        for _ in range(DAYS * QUESTIONS_A_DAY):
            shoes, basket = await checker.can_fetch_many(
                AGENT, [f"{SHOP}/shoes", f"{SHOP}/basket"]
            )
            meanings.append(MEANINGS[shoes, basket])
            clock.advance(DAY / QUESTIONS_A_DAY)
    return list(spans(meanings))


def spans(meanings: list[str]) -> list[Span]:
    """`meanings` as spans, with equal neighbours merged."""
    result: list[Span] = []
    begin = 0.0
    for meaning, questions in groupby(meanings):
        end = begin + len(list(questions)) / QUESTIONS_A_DAY
        result.append(Span(begin=begin, end=end, meaning=meaning))
        begin = end
    return result


def draw(rows: dict[str, list[Span]], path: Path) -> None:
    """Plot a row for each policy and failure, coloured by what is allowed."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    for row, parts in enumerate(rows.values()):
        for part in parts:
            axes.barh(
                row,
                part.end - part.begin,
                left=part.begin,
                color=COLOURS[part.meaning],
            )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlim(0, DAYS)
    axes.set_xticks(range(0, DAYS + 1, 5))
    axes.set_xlabel("days since the first failure")
    handles = [Patch(color=colour, label=name) for name, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    figure.savefig(path)


async def main() -> None:
    """Simulate each outage, and print and plot what is allowed."""
    rows: dict[str, list[Span]] = {}
    for name, policy in POLICIES.items():
        print(name)
        for kind, failure in FAILURES.items():
            parts = rows[f"{name}, {kind}"] = await outage(policy, failure)
            text = ", ".join(
                f"{part.meaning} from day {part.begin:g}" for part in parts
            )
            print(f"    {kind}: {text}")
    draw(rows, PICTURE)
    print(f"Drawn in {PICTURE}")


if __name__ == "__main__":
    anyio.run(main)
