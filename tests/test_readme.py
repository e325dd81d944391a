"""The README: its links, install commands, claims and figures."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_and_cited_tests_exist() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        links = re.findall(r"\]\((?!https:)([^)#]+)", text)
        paths = [(ROOT / page).parent / link for link in links]
        paths += [ROOT / cited for cited in re.findall(r"`(tests/[\w/.]+)`", text)]

        assert paths
        assert [path for path in paths if not path.exists()] == []


def test_specification_table_names_existing_tests() -> None:
    table = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)(?:\[(.+?)\])?`", table)

    assert len(named) == table.count(".py::") > 60
    for file, test, row in named:
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {test}(" in source, test
        assert f'"{row}' in source, row


def test_install_commands_use_pypi_only_after_the_first_release() -> None:
    tutorial = (DOCS / "tutorial/first-crawl.md").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    is_released = bool(re.search(r"^## [\d.]+ \([\d-]+\)$", changelog, re.MULTILINE))
    assert ("pip install robotsgate\n" in README) == is_released
    assert ("not on PyPI" in README) != is_released
    assert ("once robotsgate is on PyPI" in tutorial) != is_released

    files = ("docs/faq.md", "docs/how-to/*.md", "docs/reference/**/*.md", "src/**/*.py")
    for page in files:
        text = "".join(file.read_text(encoding="utf-8") for file in ROOT.glob(page))
        sources = set(re.findall(r"pip install '?(robotsgate|\.)(?!\S* @ git)", text))
        assert sources == {"robotsgate" if is_released else "."}, page


def test_claims_about_other_libraries_link_to_their_source() -> None:
    claims = re.findall(r"^\| [\w. ']+ \| (.+?) \|", README, re.MULTILINE)[1:]

    assert len(claims) == 4
    assert [claim for claim in claims if "](https://github.com/" not in claim] == []


def test_figures_match_the_measurements() -> None:
    (lookup,) = re.findall(r"lookup took about (\d\.\d) µs", README)
    (protego,) = re.findall(r"protego took about (\d\.\d) times", README)
    (less,) = re.findall(r"about (\d)% less", README)
    (more,) = re.findall(r"(\d)% more for a file of 500 bytes", README)
    page = (DOCS / "explanation/numbers.md").read_text(encoding="utf-8")

    for row, figure in (
        ("await can_fetch", lookup),
        (r"protego \d\S*", protego),
        ("by name, 1,438 bytes", f"{1 - int(less) / 100:.2f}"),
        ("by name, 500 bytes", f"{1 + int(more) / 100:.2f}"),
    ):
        cells = re.findall(rf"^\| {row} \|(.+)", page, re.MULTILINE)[0]
        digits = len(figure) - 2
        measured = re.findall(r"\d+\.\d+", cells)
        assert figure in {f"{float(each):.{digits}f}" for each in measured}, row
