"""Builds the serverless tester page: `python docs/tester_page.py FOLDER`.

It is the page of `robotsgate serve`, but Python runs in the browser. Sphinx adds it to
the HTML; npm downloads Pyodide, which is Python for browsers.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile

import robotsgate

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Sphinx handles loggers with this prefix, so a warning is an error with -W.
_log = logging.getLogger("sphinx.tester_page")

_SOURCES = Path(__file__).with_name("tester")
_PACKAGE = Path(robotsgate.__file__).parent
_SHARED = _PACKAGE / "cli/static"

_PYODIDE = "pyodide@314.0.7"
_SHA512 = (
    "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyM"
    "cWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
)
_PYODIDE_FILES = (
    "package.json",  # names the version, the license and the source
    "pyodide-lock.json",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide.mjs",
    "python_stdlib.zip",
)

# Imported by robotsgate.robotstxt for some files and hosts.
_DEPENDENCIES = ("http_sf", "idna", "typing_extensions")

# WebAssembly needs 'wasm-unsafe-eval'; the served page does without it.
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:;"
    " style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'none'"
)

_LEFT_OUT = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>robots.txt tester</title>
<p>This copy of the documentation has no tester, because Pyodide could not be downloaded
when the copy was built.
Run <code>robotsgate serve</code> for the same page.</p>
</html>
"""


def setup(app: Sphinx) -> None:
    """Add the page to what Sphinx builds."""
    app.connect("build-finished", _add_page)


def _add_page(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, "tester")
    if folder.exists():
        shutil.rmtree(folder)  # from an earlier run of Sphinx
    try:
        build(folder)
    except (OSError, subprocess.SubprocessError) as error:
        level = logging.WARNING if shutil.which("npm") else logging.INFO
        _log.log(level, "the tester page was left out: %s", error)
        folder.mkdir(exist_ok=True)
        (folder / "index.html").write_text(_LEFT_OUT, encoding="utf-8")


def build(folder: Path) -> None:
    """Write the page and everything it loads to `folder`, which is empty or new.

    Raises:
        OSError: there is no npm, or the folder contains files or cannot be written to.
        subprocess.SubprocessError: npm could not download Pyodide within five minutes.
        ValueError: npm downloaded something else.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"expected an empty or a new folder, got {folder}")
    with TemporaryDirectory() as temporary:
        built = Path(temporary, "tester")
        _write_page(built)
        _unpack_pyodide(built / "pyodide")
        shutil.copytree(built, folder, dirs_exist_ok=True)


def _write_page(folder: Path) -> None:
    shutil.copytree(_SHARED, folder)
    page = folder / "index.html"
    first, charset, rest = page.read_text("utf-8").partition('<meta charset="utf-8">\n')
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    page.write_text(first + charset + policy + rest, encoding="utf-8")
    for script in _SOURCES.glob("*.js"):
        shutil.copy(script, folder)
    with ZipFile(folder / "modules.zip", "w", ZIP_DEFLATED) as modules:
        modules.write(_SOURCES / "answers.py", "answers.py")
        for file in _PACKAGE.rglob("*.py"):
            modules.write(file, file.relative_to(_PACKAGE.parent))
        for name in _DEPENDENCIES:
            for file in files(name) or ():
                if file.suffix != ".pyc" and ".." not in file.parts:
                    modules.write(file.locate(), file)  # including its license


def _unpack_pyodide(folder: Path) -> None:
    folder.mkdir()
    with TemporaryDirectory() as downloads:
        subprocess.run(  # noqa: S603 (the npm of the system)
            [
                shutil.which("npm") or "npm",
                "pack",
                _PYODIDE,
                "--silent",
                "--prefer-offline",
                "--fetch-retries=1",
                f"--pack-destination={downloads}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=300,
        )
        (archive,) = Path(downloads).iterdir()
        digest = hashlib.sha512(archive.read_bytes()).digest()
        if base64.b64encode(digest).decode() != _SHA512:
            raise ValueError(f"expected the known {_PYODIDE}, got another digest")
        with tarfile.open(archive) as package:
            for name in _PYODIDE_FILES:
                content = package.extractfile(f"package/{name}")
                assert content is not None  # noqa: S101 (all are regular files)
                (folder / name).write_bytes(content.read())


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]))
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"the tester page was not built: {error}")
