"""Each difference from Google is put down to the reason that it really has."""

from __future__ import annotations

import gzip
import json
import sys
from itertools import permutations
from pathlib import Path

import pytest

from benchmarks import differences
from benchmarks.differences import Tally, parts_of_page, reasons, renewed, tally
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

_PAGE = Path(__file__).parents[1] / "docs/explanation/differences-from-google.md"
_MARKED = "<!-- begin counts -->\nold\n<!-- end counts -->\nprose\n"
_SITE = "https://example.com"


def _asked(body: str, agent: str, path: str) -> Question:
    return Question(body=body.encode(), agent=agent, url=_SITE + path)


def _point(settle: str) -> Point:
    return next(point for point in POINTS if point.settle.__name__ == settle)


_TOUCHING = [
    # Half a mark makes an unknown field.
    (_point("settle_fields"), _point("settle_half_a_mark")),
    # No URI may hold a backslash.
    (_point("settle_unsafe"), _point("settle_spelling_of_url")),
]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_example_differs_for_its_own_reason_alone(point: Point) -> None:
    assert google(point.example) is not ours(point.example)
    assert reasons(point.example)[0] == (point,)


@pytest.mark.parametrize(
    ("point", "other"),
    [
        pytest.param(point, other, id=f"{point.name}, in {other.name}")
        for point, other in permutations(POINTS, 2)
        if (point, other) not in _TOUCHING
    ],
)
def test_settling_one_point_leaves_another_alone(point: Point, other: Point) -> None:
    settled = point.settle(other.example)

    assert ours(settled) is ours(other.example)
    assert google(settled) is google(other.example)


@pytest.mark.parametrize(
    ("question", "settled"),
    [
        pytest.param(
            _asked("User-agent: *\nDisallow: /shop/", "a", "/s%68op/"),
            ["settle_unreserved"],
            id="an escape in the URL",
        ),
        pytest.param(
            _asked("User-agent: *\nDisallow: /%73hop/", "a", "/shop/"),
            ["settle_unreserved"],
            id="an escape in the rule",
        ),
        pytest.param(
            _asked("User-agent: *\nDisallow: /a%2D\nAllow: /a*b", "a", "/a%2Db"),
            ["settle_unreserved"],
            id="an escape on both sides that makes a rule longer",
        ),
        pytest.param(
            _asked("User-agent: a1\nUser-agent: b\nDisallow: /", "a", "/"),
            ["settle_other_names"],
            id="a digit where the agent's name ends",
        ),
        pytest.param(
            _asked("User-agent: a.b\nDisallow: /", "A.B", "/"),
            ["settle_own_name"],
            id="a dot in the agent's name, in another case",
        ),
        pytest.param(
            _asked("User-agent: a1b\nDisallow: /", "a1b/2.0 (+https://h/)", "/"),
            ["settle_own_name", "settle_header"],
            id="a header with a digit in its token",
        ),
        pytest.param(
            _asked("User-agent: b\nDisallow: /", "Mozilla/5.0 (compatible; b/1)", "/"),
            ["settle_header"],
            id="a header like a browser's",
        ),
        pytest.param(
            _asked("User-agent: *\nDisallow: /*.txt$", "a", "/robots.txt"),
            ["settle_robots_txt"],
            id="the file itself, by a wildcard",
        ),
        pytest.param(
            _asked("User-agent: *\nDisallow: /a|b", "a", "/a%7Cb"),
            ["settle_unsafe"],
            id="a bar",
        ),
        pytest.param(
            _asked("User-agent: *\nDisalow: /a", "a", "/a"),
            ["settle_fields"],
            id="a misspelt rule",
        ),
        pytest.param(
            _asked("User agent: *\nDisalow: /%61", "a", "/%61"),
            ["settle_fields"],
            id="misspelt, and an escape that does not matter",
        ),
        pytest.param(
            _asked("User-agent *\nDisalow: /a", "a", "/a"),
            ["settle_fields"],
            id="misspelt, and a missing colon that does not matter",
        ),
        pytest.param(
            _asked("User-agent: *\nDisalow: /a\nDisallow /a", "a", "/a"),
            ["settle_fields", "settle_colons"],
            id="misspelt once, without a colon once",
        ),
        pytest.param(
            _asked("User-agent: *\nDisallow: /a%2fb", "a", "/%61%2fb"),
            ["settle_unreserved", "settle_case_of_escapes"],
            id="an escape, and lower-case digits of another",
        ),
    ],
)
def test_smallest_set_of_reasons_is_found(
    question: Question, settled: list[str]
) -> None:
    found = reasons(question)[0]

    assert google(question) is not ours(question)
    assert [point.settle.__name__ for point in found] == settled


def test_example_of_several_points_needs_them_together() -> None:
    assert [len(points) for points in reasons(SEVERAL)] == [2]


def test_agent_without_a_token_gets_no_answer() -> None:
    assert ours(REFUSED.example) is None


def test_settled_in_all_points_nasty_questions_are_answered_alike() -> None:
    """No other point is known: what is left after all of these are settled?"""
    pytest.importorskip("jwm.robotstxt", reason="the cases are made with its module")
    from tests.robotstxt.google_fuzz import case  # noqa: PLC0415

    compared = 0
    for seed in range(60):
        one = case(seed)
        for agent, url in one.questions:
            question = Question(body=one.body, agent=agent, url=url)
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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "robots"
    folder.mkdir()
    (folder / "shop").write_bytes(b"User-agent: *\nDisallow: /shop/")
    (folder / "bots").write_bytes(b"User-agent: News24Bot\nDisallow: /")
    return folder


def _verdict(file: str, agent: str, path: str, *, googles: bool) -> str:
    return json.dumps(
        {"file": file, "agent": agent, "url": _SITE + path, "google": googles}
    )


_VERDICTS = [
    _verdict("shop", "a", "/shop/", googles=False),
    _verdict("shop", "a", "/s%68op/", googles=True),
    _verdict("shop", ": *", "/", googles=True),
    _verdict("bots", "News", "/", googles=False),
    _verdict("bots", "News24Bot", "/", googles=True),
]


def test_corpus_is_tallied(corpus: Path) -> None:
    result = tally(corpus, _VERDICTS)

    assert result.files == {"shop", "bots"}
    assert result.questions == 5
    assert result.differences == 3
    assert result.refused == 1
    assert not result.google_differs
    assert not result.unexplained
    assert result.explained == {
        (_point("settle_unreserved"),): 1,
        (_point("settle_other_names"),): 1,
        (_point("settle_own_name"),): 1,
    }


def test_difference_that_no_point_explains_is_told(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tuple(point for point in POINTS if point != _point("settle_unreserved"))
    monkeypatch.setattr(differences, "POINTS", known)

    result = tally(corpus, _VERDICTS)

    assert result.differences == 3
    assert result.unexplained == [
        "shop: 'a' 'https://example.com/s%68op/': Google True, RFC9309 False"
    ]


def test_difference_of_the_google_dialect_is_told(corpus: Path) -> None:
    result = tally(corpus, [_verdict("shop", "a", "/", googles=False)])

    assert result.google_differs == ["shop: 'a' 'https://example.com/'"]


def _run(
    corpus: Path, verdicts: list[str], monkeypatch: pytest.MonkeyPatch, *more: str
) -> int:
    file = corpus.parent / "verdicts.gz"
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.write("\n".join(verdicts))
    given = ["differences", "--corpus", str(corpus), "--verdicts", str(file), *more]
    monkeypatch.setattr(sys, "argv", given)
    return differences.main()


def test_command_renews_the_page(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = corpus.parent / "page.md"
    page.write_text(_PAGE.read_text(encoding="utf-8"), encoding="utf-8")

    status = _run(corpus, _VERDICTS, monkeypatch, "--write", str(page))

    assert status == 0
    assert "RFC9309 differs from Google on 3:" in capsys.readouterr().out
    assert "has 5 questions about 2 files" in page.read_text(encoding="utf-8")


def test_command_fails_where_something_is_unexplained(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = _verdict("shop", "a", "/", googles=False)

    status = _run(corpus, [wrong], monkeypatch)

    assert status == 1
    assert "unexplained: shop: 'a' 'https://example.com/'" in capsys.readouterr().out


def test_renewing_a_page_twice_changes_nothing_more() -> None:
    once = renewed(_MARKED, {"counts": "new\n"})

    assert once == "<!-- begin counts -->\n\nnew\n\n<!-- end counts -->\nprose\n"
    assert renewed(once, {"counts": "new\n"}) == once


def test_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="begin classes"):
        renewed(_MARKED, {"classes": "new\n"})


def test_page_of_the_documentation_has_the_examples_of_the_points() -> None:
    """Without a corpus all points are unmet; rows differ by the counts alone."""
    page = _PAGE.read_text(encoding="utf-8")

    for row in parts_of_page(Tally())["unmet"].splitlines()[2:]:
        name, _, example = row.removeprefix("| ").partition(" | ")

        assert name in page
        assert example in page


def test_page_of_the_documentation_says_that_nothing_is_unexplained() -> None:
    page = _PAGE.read_text(encoding="utf-8")

    assert "`Dialect.GOOGLE` differs from Google on 0 of them." in page
    assert "\n0 of its differences are outside the classes of the table." in page
