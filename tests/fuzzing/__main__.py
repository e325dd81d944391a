"""Fuzzes one target with atheris, guided by the coverage of robotsgate.

    python -m tests.fuzzing robotstxt --seconds 600
    python -m tests.fuzzing robotstxt --replay crash-0123abcd

Stops at the first failure, prints a small input that reproduces it, and saves the full
input.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.fuzzing.target import Target

_TABLE = "tests.fuzzing.targets"

# libFuzzer reports an input that takes longer, even if the target itself does not.
_TIMEOUT_SECONDS = 60


def main() -> int:
    """Fuzz or replay; 0 if nothing was found. Fuzzing exits the process."""
    parser = _parser()
    options = parser.parse_args()
    if options.replay:
        target = _target(parser, options.target, import_module(_TABLE).TARGETS)
        return _replay(target, options.replay)
    try:
        atheris = import_module("atheris")
    except ImportError:
        parser.error("expected atheris: pip install -e '.[test,fuzz]'")
    with atheris.instrument_imports(include=["robotsgate"]):
        targets = import_module(_TABLE).TARGETS  # imports robotsgate
    target = _target(parser, options.target, targets)
    atheris.Setup(
        [sys.argv[0], *_libfuzzer_arguments(target, options)], _reporting(target.check)
    )
    atheris.Fuzz()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzzing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help="a target name from targets.py")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=int, help="how long to run; default: 60")
    length.add_argument("--runs", type=int, help="run this many inputs instead")
    parser.add_argument(
        "--corpus", type=Path, help="folder with initial inputs; new ones are added"
    )
    parser.add_argument(
        "--replay",
        type=Path,
        nargs="+",
        metavar="INPUT",
        help="check these files or folders of files; does not need atheris",
    )
    return parser


def _target(
    parser: argparse.ArgumentParser, name: str, targets: Mapping[str, Target]
) -> Target:
    if name not in targets:
        parser.error(f"expected one of {', '.join(targets)}, got {name!r}")
    return targets[name]


def _libfuzzer_arguments(target: Target, options: argparse.Namespace) -> list[str]:
    """The arguments for libFuzzer; creates a folder for seeds and findings."""
    folder = Path(tempfile.mkdtemp(prefix=f"fuzzing-{options.target}-"))
    sys.stderr.write(f"inputs and findings: {folder}\n")
    corpus: Path = options.corpus or folder / "corpus"
    seeds, words = folder / "seeds", folder / "words"
    for path in (corpus, seeds):
        path.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (seeds / str(number)).write_bytes(seed)
    words.write_text(
        "".join(
            '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'
            for word in target.words
        ),
        encoding="ascii",
    )
    limit = f"-max_total_time={options.seconds or 60}"
    if options.runs is not None:
        limit = f"-runs={options.runs}"
    return [
        str(corpus),
        str(seeds),
        limit,
        f"-dict={words}",
        f"-max_len={target.max_length}",
        f"-timeout={_TIMEOUT_SECONDS}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
    ]


def _reporting(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Wrap `check` so that it prints a small input before it raises."""

    def check_and_report(data: bytes) -> None:
        try:
            check(data)
        except Exception:
            _report(check, data)
            raise

    return check_and_report


def _replay(target: Target, paths: Sequence[Path]) -> int:
    """Check the inputs in `paths`; 1 if any of them fails."""
    files = [
        file
        for path in paths
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
    ]
    findings = sum(_is_finding(target, file) for file in files)
    sys.stdout.write(f"{len(files):,} inputs, findings: {findings:,}\n")
    return 1 if findings else 0


def _is_finding(target: Target, file: Path) -> bool:
    data = file.read_bytes()
    if _failure(target.check, data) is None:
        return False
    sys.stdout.write(f"{file}\n")
    _report(target.check, data)
    return True


def _report(check: Callable[[bytes], None], data: bytes) -> None:
    small = _smaller(check, data)
    sys.stdout.write(f"{_failure(check, small)}\n    on {small!r}\n")
    sys.stdout.flush()


def _smaller(check: Callable[[bytes], None], data: bytes) -> bytes:
    """A part of `data` for which `check` raises at the same frame."""
    failure = _failure(check, data)
    size = max(len(data) // 2, 1)
    while True:
        start = 0
        while start < len(data):
            smaller = data[:start] + data[start + size :]
            if _failure(check, smaller) == failure:
                data = smaller
            else:
                start += size
        if size == 1:
            return data
        size //= 2


def _failure(check: Callable[[bytes], None], data: bytes) -> str | None:
    """What `check` raises, and where; `None` if it does not raise."""
    try:
        check(data)
    except Exception as error:  # noqa: BLE001 (any error is a finding)
        frame = extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {frame.name}, line {frame.lineno}"
    return None


if __name__ == "__main__":
    sys.exit(main())
