"""The pre-commit hook and the GitHub action, as used in the how-to guide."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import robotsgate
from tests.systems import need_posix
from tests.tables import cases

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs/how-to/check-and-lint.md").read_text(encoding="utf-8")
_HOOKS, _WORKFLOW = map(
    yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", _PAGE, re.DOTALL | re.MULTILINE)
)
_ON_THE_PAGE = _WORKFLOW["jobs"]["lint"]["steps"][-1]["with"]
_ACTION = yaml.safe_load((_ROOT / "action.yml").read_text(encoding="utf-8"))
(_HOOK,) = yaml.safe_load((_ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))

_SOUND = "User-agent: *\nDisallow: /private\n"
_BROKEN = "User-agent: *\nDisalow: /private\n"
_WARNED = "Disallow: /private\n"

_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _run(script: str, folder: Path, **variables: str) -> tuple[int, str]:
    """Run a shell script as GitHub does; the exit code and the output."""
    need_posix()
    options = ("--noprofile", "--norc", "-eo", "pipefail", "-c", script)
    process = subprocess.run(  # noqa: S603 (our own script)
        ["bash", *options],  # noqa: S607 (as GitHub does)
        cwd=folder,
        env=os.environ | {"PATH": _PATH} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=60,
    )
    return process.returncode, process.stdout


@pytest.mark.parametrize(("name", "is_linted"), [
    ("robots.txt", True), ("www/robots.txt", True), ("my-robots.txt", False),
])  # fmt: skip
def test_hook_is_for_files_named_robots_txt(name: str, *, is_linted: bool) -> None:
    assert bool(re.search(_HOOK["files"], name)) is is_linted


@cases("text code", {"an error": (_BROKEN, 1), "a warning": (_WARNED, 1),
                     "a valid file": (_SOUND, 0)})  # fmt: skip
def test_hook_on_the_page_fails_if_lint_does(
    tmp_path: Path, text: str, code: int
) -> None:
    (tmp_path / "robots.txt").write_text(text, encoding="utf-8")
    ((used,),) = (one["hooks"] for one in _HOOKS["repos"])

    command = " ".join([_HOOK["entry"], *used["args"], "robots.txt"])

    assert used["id"] == _HOOK["id"]
    assert _run(command, tmp_path)[0] == code


@cases("text inputs code", {
    "a valid file": (_SOUND, {}, 0),
    "an error": (_BROKEN, {}, 1),
    "a warning": (_WARNED, {}, 0),
    "a warning, with the inputs on the page": (_WARNED, _ON_THE_PAGE, 1),
    "several files": (_SOUND, {"files": "robots.txt\nno.txt"}, 2),
    "wildcards": (_BROKEN, {"files": "*.txt"}, 1),
    "a shell command as input": (_SOUND, {"files": "robots.txt; exit 7"}, 2),
})  # fmt: skip
def test_action_fails_if_lint_does_and_annotates_the_lines(
    tmp_path: Path, text: str, inputs: dict[str, str], code: int
) -> None:
    (tmp_path / "robotsgate").symlink_to(Path(robotsgate.__file__).parents[1])
    (tmp_path / "robots.txt").write_text(text, encoding="utf-8")
    (tmp_path / "click.py").write_text("raise SystemExit(8)", encoding="utf-8")
    _, lint = _ACTION["runs"]["steps"]
    defaults = {name: one["default"] for name, one in _ACTION["inputs"].items()}
    given = {
        name: re.sub(
            r"\${{ inputs\.(\w+) }}", lambda word: (defaults | inputs)[word[1]], value
        )
        for name, value in lint["env"].items()
    }

    status, output = _run(lint["run"], tmp_path, RUNNER_TEMP=str(tmp_path), **given)

    command, stop, *findings, start = output.splitlines()
    matcher = json.loads(Path(command.removeprefix("::add-matcher::")).read_text())
    ((pattern,),) = (one["pattern"] for one in matcher["problemMatcher"])
    assert status == code
    # A file's name may look like a workflow command, such as ::add-mask::.
    assert re.fullmatch(r"::stop-commands::\w{64}", stop)
    assert start == f"::{stop.removeprefix('::stop-commands::')}::"
    if text == _BROKEN:
        parts = re.search(pattern["regexp"], findings[0])
        names = ("file", "line", "column", "severity")
        shown = [parts[pattern[name]] for name in names] if parts else []
        assert shown == ["robots.txt", "2", "1", "error"]
