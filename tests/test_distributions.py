"""What the sdist and the wheel contain, and what a release requires."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from robotsgate import __version__
from tests.systems import need_posix
from tests.tables import cases

ROOT = Path(__file__).parents[1]
ADDRESS = "https://code.example/robotsgate"
RELATIVE_LINK = re.compile(r"\]\((?!https:)")


# Besides src: what packagers need to build the docs and to run the tests.
INCLUDED = {".ci", ".github", "benchmarks", "docs", "examples", "tests"}
INCLUDED_FILES = {"LICENSE", ".pre-commit-hooks.yaml", "action.yml"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the sources, and with files that must not be published."""
    folder = tmp_path / "checkout"
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    for file in ROOT.iterdir():
        if file.suffix in {".md", ".py", ".toml"} or file.name in INCLUDED_FILES:
            shutil.copy(file, folder)
    for name in INCLUDED:
        (folder / name).mkdir()
        (folder / name / "file").touch()
    for stray in (".venv/pyvenv.cfg", "env/lib/module.py", "site/index.html"):
        (folder / stray).parent.mkdir(parents=True)
        (folder / stray).touch()
    return folder


def run(*module: str | Path, folder: Path) -> None:
    subprocess.run(  # noqa: S603 (this very interpreter)
        [sys.executable, "-m", *module],
        cwd=folder,
        timeout=60,
        check=True,
        capture_output=True,
    )


def replace_line(file: Path, start: str, line: str) -> None:
    old = file.read_text(encoding="utf-8")
    new = re.sub(f"^{re.escape(start)}.*", line, old, count=1, flags=re.MULTILINE)
    file.write_text(new, encoding="utf-8")


def wheel(checkout: Path) -> Path:
    run("hatchling", "build", "-t", "wheel", folder=checkout)
    (built,) = checkout.glob("dist/*.whl")
    return built


def unpacked_sdist(checkout: Path) -> Path:
    run("hatchling", "build", "-t", "sdist", folder=checkout)
    (built,) = checkout.glob("dist/*.tar.gz")
    run("tarfile", "-e", built, folder=built.parent)
    return built.parent / built.name.removesuffix(".tar.gz")


def test_sdist_contains_only_the_files_of_the_project_and_makes_the_same_wheel(
    checkout: Path,
) -> None:
    from_checkout = wheel(checkout)

    sdist = unpacked_sdist(checkout)

    files = {path.name for path in checkout.iterdir() if path.is_file()}
    folders = INCLUDED | {"src"}
    assert {path.name for path in sdist.iterdir()} == files | folders | {"PKG-INFO"}
    assert wheel(sdist).read_bytes() == from_checkout.read_bytes()


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_description_links_to_the_repository_only_if_its_address_is_set(
    address: str, checkout: Path
) -> None:
    replace_line(checkout / "pyproject.toml", "address = ", f'address = "{address}"')

    built = (unpacked_sdist(checkout) / "PKG-INFO").read_text(encoding="utf-8")

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = len(RELATIVE_LINK.findall(readme)) if address else 0
    assert built.count(f"]({address}/blob/v{__version__}/") == links
    assert RELATIVE_LINK.findall(built) == []
    assert (f"Project-URL: Repository, {address}\n" in built) == bool(address)


@cases("tag date address is_released", {
    "complete": (f"v{__version__}", "2030-01-02", ADDRESS, True),
    "a tag for another version": ("v99.0", "2030-01-02", ADDRESS, False),
    "no date": (f"v{__version__}", "unreleased", ADDRESS, False),
    "no address": (f"v{__version__}", "2030-01-02", "", False),
})  # fmt: skip
def test_release_requires_a_matching_tag_a_date_and_an_address(
    tag: str, date: str, address: str, *, is_released: bool, checkout: Path
) -> None:
    need_posix()
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    (script,) = re.findall(r"an address\n +run: \|\n((?: {10}.+\n)+)", workflow)
    replace_line(checkout / "pyproject.toml", "address = ", f'address = "{address}"')
    heading = f"## {__version__} ("
    replace_line(checkout / "CHANGELOG.md", heading, f"{heading}{date})")
    run("hatchling", "build", "-t", "sdist", folder=checkout)

    status = subprocess.call(  # noqa: S603 (our own script)
        ["bash", "-e", "-c", textwrap.dedent(script)],  # noqa: S607 (as the workflow)
        cwd=checkout,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        timeout=60,
    )

    assert (status == 0) == is_released


def test_ci_runs_on_every_supported_python_version() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    supported = re.findall(r":: Python :: (3\.\d+)", settings)
    assert re.findall(r'"(3\.\d+)"', workflow) == supported


def test_lint_in_ci_page_pins_this_version() -> None:
    page = (ROOT / "docs/how-to/check-and-lint.md").read_text(encoding="utf-8")

    pins = re.findall(r"(?:rev: |/robotsgate@)(v[\d.]+)", page)
    assert len(pins) >= 2
    assert set(pins) == {f"v{__version__}"}
