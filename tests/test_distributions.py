"""What the sdist and the wheel contain."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robotsgate import __version__

ROOT = Path(__file__).parents[1]
RELATIVE_LINK = re.compile(r"\]\((?!https:)")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the sources, and with files that nobody wants to publish."""
    folder = tmp_path / "checkout"
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    for file in ROOT.iterdir():
        if file.suffix in {".md", ".py", ".toml"} or file.name == "LICENSE":
            shutil.copy(file, folder)
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


def wheel(checkout: Path) -> Path:
    run("hatchling", "build", "-t", "wheel", folder=checkout)
    (built,) = checkout.glob("dist/*.whl")
    return built


def unpacked_sdist(checkout: Path) -> Path:
    run("hatchling", "build", "-t", "sdist", folder=checkout)
    (built,) = checkout.glob("dist/*.tar.gz")
    run("tarfile", "-e", built, folder=built.parent)
    return built.parent / built.name.removesuffix(".tar.gz")


def test_sdist_contains_nothing_else_that_lies_in_the_checkout(checkout: Path) -> None:
    sdist = unpacked_sdist(checkout)

    files = {path.name for path in checkout.iterdir() if path.is_file()}
    assert {path.name for path in sdist.iterdir()} == files | {"PKG-INFO", "src"}


def test_wheel_from_the_sdist_is_the_wheel_from_the_checkout(checkout: Path) -> None:
    from_checkout = wheel(checkout)

    from_sdist = wheel(unpacked_sdist(checkout))

    assert from_sdist.read_bytes() == from_checkout.read_bytes()


@pytest.mark.parametrize("address", ["", "https://code.example/robotsgate"])
def test_description_links_into_the_repository_if_its_address_is_known(
    address: str, checkout: Path
) -> None:
    settings = checkout / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(
        re.sub('^address = ".*"', f'address = "{address}"', text, flags=re.MULTILINE),
        encoding="utf-8",
    )

    built = (unpacked_sdist(checkout) / "PKG-INFO").read_text(encoding="utf-8")

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = len(RELATIVE_LINK.findall(readme)) if address else 0
    assert built.count(f"]({address}/blob/v{__version__}/") == links
    assert RELATIVE_LINK.findall(built) == []
    assert (f"Project-URL: Repository, {address}\n" in built) == bool(address)
