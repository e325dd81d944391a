"""Fuzzes one target with atheris, guided by the coverage of robotsgate.

    python -m tests.fuzzing robotstxt --seconds 600
    python -m tests.fuzzing robotstxt --replay crash-0123abcd

Stops at the first input on which the target raises, prints a small one that
raises the same, and keeps the whole one.
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

# libFuzzer gives up on an input after so long, if the target itself does not.
_TIMEOUT_SECONDS = 60


def main() -> int:
    """Fuzz, or replay: 0 if nothing was found. Fuzzing ends the process itself."""
    parser = _parser()
    chosen = parser.parse_args()
    if chosen.replay:
        target = _target(parser, chosen.target, import_module(_TABLE).TARGETS)
        return _replayed(target, chosen.replay)
    try:
        atheris = import_module("atheris")
    except ImportError:
        parser.error("expected atheris: pip install -e '.[test,fuzz]'")
    with atheris.instrument_imports(include=["robotsgate"]):
        targets = import_module(_TABLE).TARGETS  # which imports robotsgate
    target = _target(parser, chosen.target, targets)
    atheris.Setup(
        [sys.argv[0], *_libfuzzer_arguments(target, chosen)], _reporting(target.check)
    )
    atheris.Fuzz()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzzing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help="a name from the table in targets.py")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=int, help="how long; 60 if nothing is said")
    length.add_argument("--runs", type=int, help="how many executions instead")
    parser.add_argument(
        "--corpus", type=Path, help="a folder of inputs, to begin with and to add to"
    )
    parser.add_argument(
        "--replay",
        type=Path,
        nargs="+",
        metavar="INPUT",
        help="check these files, or those of these folders; needs no atheris",
    )
    return parser


def _target(
    parser: argparse.ArgumentParser, name: str, targets: Mapping[str, Target]
) -> Target:
    if name not in targets:
        parser.error(f"expected a target of {', '.join(targets)}, got {name!r}")
    return targets[name]


def _libfuzzer_arguments(target: Target, chosen: argparse.Namespace) -> list[str]:
    """What libFuzzer is told; seeds, dictionary and findings lie in a new folder."""
    folder = Path(tempfile.mkdtemp(prefix=f"fuzzing-{chosen.target}-"))
    sys.stderr.write(f"inputs and findings: {folder}\n")
    corpus: Path = chosen.corpus or folder / "corpus"
    seeds, words = folder / "seeds", folder / "words"
    for one in (corpus, seeds):
        one.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (seeds / str(number)).write_bytes(seed)
    words.write_text(
        "".join(
            '"' + "".join(f"\\x{octet:02x}" for octet in word) + '"\n'
            for word in target.words
        ),
        encoding="ascii",
    )
    limit = f"-max_total_time={chosen.seconds or 60}"
    if chosen.runs is not None:
        limit = f"-runs={chosen.runs}"
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
    """`check`, which prints a small input before it lets an exception out."""

    def check_and_report(data: bytes) -> None:
        try:
            check(data)
        except Exception:
            _report(check, data)
            raise

    return check_and_report


def _replayed(target: Target, paths: Sequence[Path]) -> int:
    """Check the inputs of `paths`: 1 if any of them is a finding."""
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
    """A part of `data` on which `check` raises at the same place."""
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
    """What `check` raises and where; `None` where it raises nothing."""
    try:
        check(data)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is the finding)
        place = extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.name}, line {place.lineno}"
    return None


if __name__ == "__main__":
    sys.exit(main())
