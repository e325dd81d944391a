"""The rows of `differences-from-google.md`, and the command that counts differences."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.differences import main
from robotsgate import Dialect, InvalidProductTokenError, RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE = Path(__file__).parents[1] / "docs/explanation/differences-from-google.md"
_SITE = "https://shop.example"


def rows() -> Iterator[object]:
    """The body, the agent, the URL, and the answers of both dialects in each row."""
    for line in _PAGE.read_text(encoding="utf-8").splitlines():
        cells = line.strip("| ").split(" | ")
        if "<br>" in line:
            name, (file, question, google, ours, _) = cells[0], cells[-5:]
            agent, url = decoded(question).decode().split("\n")
            url = url if "://" in url else _SITE + url
            yield pytest.param(decoded(file), agent, url, google, ours, id=name)


def decoded(cell: str) -> bytes:
    """The lines of code in a cell, in which gaps are counted and controls pictured."""
    text = re.sub(
        "` ([0-9,]+) spaces `", lambda gap: " " * int(gap[1].replace(",", "")), cell
    )
    text = text.replace("<br>", "\n").replace("`", "")
    text = re.sub("[␀-␟]", lambda picture: chr(ord(picture[0]) - 0x2400), text)
    return re.sub(
        rb"\\x([0-9a-f]{2})",
        lambda byte: bytes.fromhex(byte[1].decode()),
        text.encode(),
    )


def answer(body: bytes, agent: str, url: str, dialect: Dialect) -> str:
    robots_txt = RobotsTxt.parse(body, dialect=dialect, max_bytes=None)
    try:
        return "yes" if robots_txt.can_fetch(agent, url) else "no"
    except InvalidProductTokenError:
        return "error"


@pytest.mark.parametrize(("body", "agent", "url", "google", "ours"), list(rows()))
def test_dialects_answer_as_the_page_says(
    body: bytes, agent: str, url: str, google: str, ours: str
) -> None:
    assert answer(body, agent, url, Dialect.GOOGLE) == google
    assert answer(body, agent, url, Dialect.RFC9309) == ours
    assert google != ours


def test_command_counts_differences_and_fails_if_google_differs(
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

    assert status == 1
    output = capsys.readouterr().out
    assert "\ndiffers from Google: shop: 'a' 'https://shop.example/'\n" in output
    text = page.read_text(encoding="utf-8")
    assert "has 4 lookups in 1 files.\n" in text
    assert "differs on 2, and raises an error for 1.\n" in text
