"""Each difference from Google is attributed to its actual cause."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.differences import Tally, main, parts_of_page, reasons
from benchmarks.points_of_difference import (
    POINTS,
    REFUSED,
    SEVERAL,
    Point,
    Question,
    google,
    ours,
)
from robotsgate import InvalidURLError

pytestmark = pytest.mark.slow

_PAGE = Path(__file__).parents[1] / "docs/explanation/differences-from-google.md"
_SITE = "https://example.com"


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_example_of_a_point_differs_only_because_of_it(point: Point) -> None:
    assert google(point.example) is not ours(point.example)
    assert reasons(point.example)[0] == (point,)


def test_settling_every_point_removes_all_differences() -> None:
    """The points are complete: nothing else explains a difference."""
    pytest.importorskip("jwm.robotstxt", reason="it generates the cases")
    from tests.robotstxt.google_fuzz import case  # noqa: PLC0415

    compared = 0
    for seed in range(60):
        generated = case(seed)
        for agent, url in generated.questions:
            question = Question(body=generated.body, agent=agent, url=url)
            try:
                answer = ours(question)
            except InvalidURLError:
                continue
            if answer is None:
                continue
            for point in POINTS:
                question = point.settle(question)

            assert google(question) is answer is ours(question), (seed, agent, url)

            compared += 1
    assert compared > 1_000


def test_unexplained_difference_has_no_reasons() -> None:
    unreserved = next(p for p in POINTS if p.settle.__name__ == "settle_unreserved")
    others = [point for point in POINTS if point is not unreserved]

    assert reasons(unreserved.example, others) == []


def test_command_writes_the_page_and_fails_on_unexplained_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop").write_bytes(b"User-agent: *\nDisallow: /shop/")
    page = tmp_path / "page.md"
    page.write_text(_PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    verdicts = [
        {"file": "shop", "agent": agent, "url": _SITE + path, "google": google}
        for agent, path, google in (
            ("a", "/shop/", False),
            ("a", "/s%68op/", True),
            (": *", "/", True),
            ("a", "/", False),
        )
    ]
    with gzip.open(tmp_path / "verdicts.gz", "wt", encoding="utf-8") as lines:
        lines.write("\n".join(map(json.dumps, verdicts)))

    arguments = ["--corpus", str(tmp_path), "--verdicts", str(tmp_path / "verdicts.gz")]
    status = main([*arguments, "--write", str(page)])

    text = page.read_text(encoding="utf-8")
    assert status == 1
    assert "unexplained: shop: 'a' 'https://example.com/'" in capsys.readouterr().out
    assert "has 4 lookups in 1 files" in text
    assert "| 1. a letter, a digit or one of `-._~` written as an escape | 1 |" in text
    assert f"| {REFUSED.name} | 1 |" in text


def test_page_lists_every_point_and_leaves_nothing_unexplained() -> None:
    """Without a corpus, no point occurs, so only the counts in the rows differ."""
    page = _PAGE.read_text(encoding="utf-8")

    for row in parts_of_page(Tally())["unmet"].splitlines()[2:]:
        name, _, example = row.removeprefix("| ").partition(" | ")

        assert name in page
        assert example in page
    assert [len(points) for points in reasons(SEVERAL)] == [2]
    assert "`Dialect.GOOGLE` differs from Google on 0 of them." in page
    assert "\n0 of these differences are not in the tables." in page
