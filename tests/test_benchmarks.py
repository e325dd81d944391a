"""Every benchmark runs at a tiny size; nothing here depends on the timings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import archive

if TYPE_CHECKING:
    from collections.abc import Callable

suite, filter_ = (
    pytest.importorskip(f"benchmarks.{name}", reason="Windows has no module resource")
    for name in ("__main__", "filter")
)

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[1]
_FIGURES = "docs/explanation/numbers.md"
_TINY = ["--corpus=CORPUS", "--quick"]


@pytest.mark.parametrize(
    ("main", "arguments", "page"),
    [
        *(
            (suite.main, [*_TINY, f"--only={name}"], _FIGURES)
            for name in suite._MEASUREMENTS
            if name != "hostile"
        ),
        (suite.main, [*_TINY, "--only=hostile"], "tests/README.md"),
        (filter_.main, ["--urls=300", "--origins=3"], _FIGURES),
        (archive.main, ["--origins=3", "--repeats=1"], _FIGURES),
    ],
    ids=[*suite._MEASUREMENTS, "filter", "archive"],
)
def test_command_updates_its_page(
    main: Callable[[list[str]], None], arguments: list[str], page: str, tmp_path: Path
) -> None:
    copy = shutil.copy(_ROOT / page, tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files/robots.txt").write_bytes(b"User-agent: *\nDisallow: /private")
    corpus = str(tmp_path / "files")

    main([*(each.replace("CORPUS", corpus) for each in arguments), f"--page={copy}"])

    assert Path(copy).read_text() != (_ROOT / page).read_text()
