"""Generates robots.txt files that resemble real ones, or reads real ones.

They resemble 4,231 files of popular sites in their numbers of rules, groups and bytes,
wildcards, line ends, and HTML pages in place of a file. Numbers are drawn from evenly
spaced points of their distribution, so that a small corpus has the same medians and the
same long tails as a large one.
"""

from __future__ import annotations

from bisect import bisect_right
from math import exp, log1p
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SEED = 9309

_WORDS = """
    about account admin api archive article assets author basket blog brand browse cart
    catalog category checkout client comment compare config content customer dashboard
    discount download edit email error event export faq feed filter forum gallery group
    help history image includes index info item jobs language library list local login
    mail map media member message mobile modules month music news newsletter offer order
    page partner password payment photo player plugins popup post preview price print
    private product profile public query rating redirect register report review sale
    schedule scripts search secure service session settings share shop sitemap source
    special sport static stats store story style submit support survey system tag team
    temp template terms theme ticket tools topic track travel update upload user video
    vote weather web widget wiki wishlist year
"""
WORDS = tuple(_WORDS.split())

_Quantiles = tuple[tuple[float, float], ...]

# Pairs: (share of the files, the maximum in that share).
_RULES_FOR_ALL: _Quantiles = (
    (0, 1), (0.08, 1), (0.18, 2), (0.28, 4), (0.38, 7), (0.46, 11), (0.60, 18),
    (0.70, 28), (0.80, 45), (0.90, 76), (0.95, 100), (0.98, 210), (0.99, 320),
    (0.996, 600), (0.998, 1_500), (0.999, 5_000), (1, 20_000),
)  # fmt: skip
_OTHER_GROUPS: _Quantiles = (
    (0, 0), (0.70, 0), (0.75, 1), (0.80, 2), (0.90, 4), (0.95, 11), (0.98, 33),
    (0.99, 110), (0.995, 190), (0.999, 520), (1, 1_100),
)  # fmt: skip
_SHARE_OF_WILDCARDS: _Quantiles = (
    (0, 0), (0.50, 0), (0.60, 0.12), (0.70, 0.28), (0.80, 0.48), (0.90, 0.70),
    (0.95, 0.92), (1, 1),
)  # fmt: skip
_COMMENTS: _Quantiles = (
    (0, 0), (0.60, 0), (0.70, 1), (0.80, 3), (0.90, 15), (0.99, 30), (1, 1_000),
)  # fmt: skip
_SITEMAPS: _Quantiles = (
    (0, 0), (0.45, 0), (0.50, 1), (0.80, 1), (0.90, 3), (0.98, 16), (0.99, 36),
    (1, 180),
)  # fmt: skip
_BYTES_OF_HTML: _Quantiles = (
    (0, 150), (0.10, 250), (0.50, 11_000), (0.90, 130_000), (0.99, 500_000),
    (1, 1_372_557),
)  # fmt: skip

_SHARE_OF_HTML = 0.04
_SHARE_WITHOUT_RULES = 0.12
_SHARE_OF_CRLF = 0.32
_SHARE_OF_DISALLOW_ONLY = 0.58  # and short files that happen to have no allow
_SHARE_OF_ALLOW = 0.2

# Long lists are machine-made: mostly literal paths in a few folders.
_LONG_LIST, _LONGEST_WITH_WILDCARDS = 100, 1_000

# In files that name more agents, all further agents are shut out.
_AGENTS_WITH_RULES = 60


def generated_corpus(files: int) -> list[bytes]:
    """Generate `files` bodies, ≥ 1: always the same ones."""
    rng = Random(SEED)
    columns = [
        _spread(quantiles, files, rng)
        for quantiles in (
            *(_RULES_FOR_ALL, _OTHER_GROUPS, _COMMENTS, _SITEMAPS),
            *(_SHARE_OF_WILDCARDS, _BYTES_OF_HTML),
        )
    ]
    return [_body(numbers, rng) for numbers in zip(*columns, strict=True)]


def robots_files(
    files: int, folder: Path | None, half: int | None = None
) -> tuple[list[bytes], str]:
    """At most `files` bodies, and a description of them.

    They are read from the files in `folder`, or from one `half` of them (1 or 2), or
    generated if `folder` is `None`.
    """
    if folder is None:
        bodies, kind = generated_corpus(files), "generated"
    else:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        Random(SEED).shuffle(paths)
        kind = "real"
        if half is not None:
            paths, kind = paths[half - 1 :: 2], f"real, half {half} of the folder"
        bodies = [path.read_bytes() for path in paths[:files]]
    return bodies, f"{len(bodies):,}, {kind}"


def _spread(quantiles: _Quantiles, count: int, rng: Random) -> list[float]:
    """Draw from `count` evenly spaced points of a distribution, shuffled."""
    draws = [_at((number + 0.5) / count, quantiles) for number in range(count)]
    rng.shuffle(draws)
    return draws


def _at(share: float, quantiles: _Quantiles) -> float:
    """The quantile of a distribution at `share`; geometric between the pairs."""
    above = bisect_right(quantiles, share, key=lambda pair: pair[0])
    (low_share, low), (high_share, high) = quantiles[above - 1 : above + 1]
    weight = (share - low_share) / (high_share - low_share)
    return exp(log1p(low) * (1 - weight) + log1p(high) * weight) - 1


def _body(numbers: Sequence[float], rng: Random) -> bytes:
    rules, others, comments, sitemaps, share_of_wildcards, bytes_of_html = numbers
    if rng.random() < _SHARE_OF_HTML:
        # Like servers that return an HTML page for every path.
        piece = f'<div style="color: red"><a href="/{word(rng)}">more</a></div>\n'
        return b"<!DOCTYPE html>\n" + piece.encode() * int(bytes_of_html / len(piece))
    lines = [f"# {' '.join(rng.choices(WORDS, k=4))}" for _ in range(round(comments))]
    if rng.random() > _SHARE_WITHOUT_RULES:
        lines += _group(round(rules), share_of_wildcards, rng)
    lines += _other_groups(round(others), rng)
    lines += [
        f"Sitemap: https://www.example.com/{slug(rng)}-{number}.xml"
        for number in range(round(sitemaps))
    ]
    end = "\r\n" if rng.random() < _SHARE_OF_CRLF else "\n"
    return end.join([*lines, ""]).encode()


def _group(rules: int, share_of_wildcards: float, rng: Random) -> list[str]:
    """The group for all agents, with `rules` rules."""
    is_short = rules <= _LONGEST_WITH_WILDCARDS
    if rules > _LONG_LIST:
        share_of_wildcards *= 0.9 if is_short else 0.4
    is_disallow_only = rng.random() < _SHARE_OF_DISALLOW_ONLY
    share_of_allow = _SHARE_OF_ALLOW if is_short and not is_disallow_only else 0.0
    folders = [f"/{slug(rng)}/" for _ in range(1 + rules // 40)]
    lines = ["User-agent: *"]
    for number in range(rules):
        kind = "Allow" if rng.random() < share_of_allow else "Disallow"
        if rng.random() < share_of_wildcards:
            pattern = _wildcard(rng)
        elif rules > _LONG_LIST and rng.random() < 0.8:
            pattern = f"{rng.choice(folders)}{slug(rng)}-{number}"
        else:
            pattern = _literal(rng)
        lines.append(f"{kind}: {pattern}")
    return lines


_LITERALS = (
    ("/{0}/", 35), ("/{0}", 15), ("/{0}/{1}/", 14), ("/{0}/{1}/{2}/", 14),
    ("/{0}-{1}.html", 12), ("/{0}?{1}=", 8), ("/{0}%20{1}/", 1), ("/{0}/über-{1}", 1),
)  # fmt: skip
_WILDCARDS = (
    ("/{0}/*.{1}", 20), ("/*.{1}$", 16), ("/{0}/*.{1}?", 8), ("/{0}/*", 14),
    ("/{0}/*/{2}/", 8), ("/*{0}", 8), ("/{0}*", 7), ("/*{0}*", 6), ("/*/{0}/", 8),
    ("*/{0}/", 3), ("/{0}?*{2}=*", 4), ("*&{0}*", 3), ("*?{0}*", 3), ("/*{0}=", 8),
    ("/*?{0}=", 8), ("/*/{0}/{2}/*", 5), ("/*?*{0}=", 4), ("/*?", 2),
)  # fmt: skip
_ENDINGS = ("pdf", "php", "html", "jpg", "aspx", "xml", "json")


def _literal(rng: Random) -> str:
    shapes, weights = zip(*_LITERALS, strict=True)
    (shape,) = rng.choices(shapes, weights)
    return str(shape).format(*rng.choices(WORDS, k=3))


def _wildcard(rng: Random) -> str:
    shapes, weights = zip(*_WILDCARDS, strict=True)
    (shape,) = rng.choices(shapes, weights)
    return str(shape).format(word(rng), rng.choice(_ENDINGS), word(rng))


def _other_groups(count: int, rng: Random) -> list[str]:
    """Groups for named agents; nine out of ten shut the agent out."""
    lines: list[str] = []
    for number in range(count):
        lines += ["", f"User-agent: {word(rng).capitalize()}Bot{number}"]
        if number >= _AGENTS_WITH_RULES or rng.random() < 0.91:
            lines.append("Disallow: /")
        else:
            rules = max(2, round(min(exp(rng.gauss(2.3, 1.2)), 400)))
            lines += [f"Disallow: {_literal(rng)}" for _ in range(rules)]
    return lines


def word(rng: Random) -> str:
    """A random word."""
    return rng.choice(WORDS)


def slug(rng: Random) -> str:
    """Words like those in the path of an article or product."""
    return "-".join(rng.choices(WORDS, k=rng.randint(1, 4)))
