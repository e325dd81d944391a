"""Picks random sentences from the README, the docs, docstrings and messages.

Use it to have the English judged by someone who does not know the project:

    python docs/sentences.py [COUNT]

The seed is the hash of the current commit, so a commit always gives the same sentences.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]

_CODE = re.compile(
    r"^(```+).*?^\1$|^<!-- begin.*?^<!-- end[^\n]*", re.MULTILINE | re.DOTALL
)
_END = re.compile(r"(?<=[.:?!])\s+(?=[A-Z`*\[])")
_MIN_WORDS = 5


def main() -> None:
    """Print the number of sentences given on the command line, or 60."""
    count = int(sys.argv[1]) if sys.argv[1:] else 60
    seed = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT)  # noqa: S607 (wherever git is)
    sentences = sorted(set(all_sentences()))
    for number, (file, sentence) in enumerate(
        random.Random(seed).sample(sentences, count),  # noqa: S311 (not secret)
        1,
    ):
        sys.stdout.write(f"{number}. {sentence}\n   ({file})\n")


def all_sentences() -> Iterator[tuple[str, str]]:
    """Pairs (file, sentence)."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    sources = ROOT.glob("src/**/*.py")
    for file in sorted((*pages, *sources)):
        text = file.read_text(encoding="utf-8")
        texts = [_CODE.sub("", text)]
        if file.suffix == ".py":
            texts = [*docstrings(ast.parse(text)), *messages(ast.parse(text))]
        name = file.relative_to(ROOT).as_posix()
        for part in texts:
            yield from ((name, sentence) for sentence in sentences_of(part))


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text, each on one line."""
    for paragraph in re.split(r"\n\s*(?:\n|[-*] |\||#)|\n(?= *\w+: )", text):
        for sentence in _END.split(" ".join(paragraph.split())):
            if len(sentence.split()) >= _MIN_WORDS:
                yield sentence.strip("| ")


def docstrings(tree: ast.AST) -> Iterator[str]:
    """The docstrings of a module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            yield ast.get_docstring(node) or ""


def messages(tree: ast.AST) -> Iterator[str]:
    """String arguments of calls, such as error and log messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(
                    argument.value, str
                ):
                    yield argument.value
                elif isinstance(argument, ast.JoinedStr):
                    yield "".join(
                        str(part.value) if isinstance(part, ast.Constant) else "…"
                        for part in argument.values
                    )


if __name__ == "__main__":
    main()
