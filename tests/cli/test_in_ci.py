"""The pre-commit hook and the GitHub action, as used in the how-to guide."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs/how-to/lint-in-ci.md").read_text(encoding="utf-8")
_HOOKS, _WORKFLOW = map(
    yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", _PAGE, re.DOTALL | re.MULTILINE)
)
_ACTION = yaml.safe_load((_ROOT / "action.yml").read_text(encoding="utf-8"))

_SOUND = "User-agent: *\nDisallow: /private\n"
_BROKEN = "User-agent: *\nDisalow: /private\n"
_WARNED = "Disallow: /private\n"
_FINDING = "robots.txt:2:1: error: only lenient crawlers understand 'disalow'"


def _run(
    *command: object, folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        # A git hook that runs the tests sets GIT_*, and a checkout sets PYTHONPATH.
        if not name.startswith("GIT_") and name != "PYTHONPATH"
    }
    return subprocess.run(  # noqa: S603 (git, pip, bash and pre-commit)
        [*map(str, command)],
        cwd=folder,
        env=environment | {"GIT_CONFIG_GLOBAL": os.devnull} | (variables or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module", autouse=True)
def _index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip the tests if pip cannot install the build backend."""
    options = ("--dry-run", "--ignore-installed", "--no-deps", "--quiet")
    command = (sys.executable, "-m", "pip", "install", *options, "hatchling")
    attempt = _run(*command, folder=tmp_path_factory.mktemp("pip"))
    if attempt.returncode:
        pytest.skip(f"pip cannot install hatchling: {attempt.stdout[-200:]}")


def _commit_all(folder: Path) -> str:
    """Commit all files in `folder` to a new git repository; return the commit's ID."""
    _run("git", "init", "--quiet", folder=folder)
    _run("git", "add", "--all", folder=folder)
    author = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    _run("git", *author, "commit", "--quiet", "-m", "x", folder=folder)
    return _run("git", "rev-parse", "HEAD", folder=folder).stdout.strip()


def test_hook_finds_errors_in_files_named_robots_txt(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    source = tmp_path_factory.mktemp("robotsgate")
    for path in _ROOT.iterdir():
        if path.is_file() and not path.name.startswith(".git"):
            shutil.copy(path, source)
    shutil.copytree(_ROOT / "src", source / "src")
    (repository,) = _HOOKS["repos"]
    here = {"repo": str(source), "rev": _commit_all(source)}
    config = json.dumps({"repos": [repository | here]})  # JSON is YAML
    home = tmp_path_factory.mktemp("home")

    def run(files: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        site = tmp_path_factory.mktemp("site")
        for name, text in {**files, ".pre-commit-config.yaml": config}.items():
            (site / name).parent.mkdir(exist_ok=True)
            (site / name).write_text(text, encoding="utf-8")
        _commit_all(site)
        command = (sys.executable, "-m", "pre_commit", "run", "--all-files")
        return _run(*command, folder=site, variables={"PRE_COMMIT_HOME": f"{home}"})

    broken = run({
        "robots.txt": _SOUND, "www/robots.txt": _BROKEN, "my-robots.txt": _BROKEN,
    })  # fmt: skip
    warned = run({"robots.txt": _WARNED})
    sound = run({"robots.txt": _SOUND})
    without = run({"index.html": "<p>"})

    assert (broken.returncode, warned.returncode) == (1, 1), broken.stdout
    assert f"\nwww/{_FINDING}" in broken.stdout
    assert "my-robots.txt" not in broken.stdout
    assert "\n1 error, 0 warnings, 0 notes\n" in broken.stdout
    assert (sound.returncode, without.returncode) == (0, 0)


_RUNS: dict[str, tuple[str, dict[str, str], int]] = {
    "a valid file": (_SOUND, {}, 0),
    "an error": (_BROKEN, {}, 1),
    "a warning": (_WARNED, {}, 0),
    "a warning, with the inputs on the page":
        (_WARNED, _WORKFLOW["jobs"]["lint"]["steps"][-1]["with"], 1),
    "several files": (_SOUND, {"files": "robots.txt\nno.txt"}, 2),
    "wildcards": (_BROKEN, {"files": "*.txt"}, 1),
    "a shell command as input": (_SOUND, {"files": "robots.txt; exit 7"}, 2),
}  # fmt: skip


def test_action_fails_if_lint_does_and_annotates_the_lines(tmp_path: Path) -> None:
    """A single test, because the installation step is slow."""
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    (tmp_path / "runner").mkdir()
    place = {
        "GITHUB_ACTION_PATH": str(_ROOT),
        "RUNNER_TEMP": f"{tmp_path}/runner",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    install, lint = _ACTION["runs"]["steps"]
    result = _run(*shell, install["run"], folder=tmp_path, variables=place)
    assert result.returncode == 0, result.stdout
    (tmp_path / "click.py").write_text("raise SystemExit(8)", encoding="utf-8")
    defaults = {name: one["default"] for name, one in _ACTION["inputs"].items()}

    def run(text: str, inputs: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "robots.txt").write_text(text, encoding="utf-8")
        chosen = defaults | inputs
        variables = {
            name: re.sub(r"\${{ inputs\.(\w+) }}", lambda word: chosen[word[1]], value)
            for name, value in lint["env"].items()
        }
        return _run(*shell, lint["run"], folder=tmp_path, variables=place | variables)

    codes = {name: run(*row[:2]).returncode for name, row in _RUNS.items()}
    command, stop, finding, _, start = run(_BROKEN, {}).stdout.splitlines()

    assert codes == {name: code for name, (_, _, code) in _RUNS.items()}
    assert command.startswith("::add-matcher::")
    matcher = json.loads(Path(command.removeprefix("::add-matcher::")).read_text())
    ((pattern,),) = (one["pattern"] for one in matcher["problemMatcher"])
    parts = re.search(pattern["regexp"], finding)
    shown = [parts[pattern[name]] for name in ("file", "line", "column", "severity")]
    assert shown == ["robots.txt", "2", "1", "error"]
    # A file's name may look like a workflow command, such as ::add-mask::.
    assert re.fullmatch(r"::stop-commands::\w{64}", stop)
    assert start == f"::{stop.removeprefix('::stop-commands::')}::"
