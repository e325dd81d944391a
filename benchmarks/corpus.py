"""Makes up robots.txt files whose shape is that of real ones, or reads real ones.

The shape is that of 4,231 files of popular sites: numbers of rules, groups and
bytes, wildcards, line ends, pages of HTML in place of a file. A number is drawn
from evenly spread places of its distribution, so that a small corpus has the same
medians and the same long tails as a large one.
"""

from __future__ import annotations

from bisect import bisect_right
from math import exp, log1p
from random import Random
from typing import TYPE_CHECKING

from benchmarks.words import PLATFORMS, WORDS, slug, word

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SEED", "made_up_corpus", "real_corpus"]

SEED = 9309

_Quantiles = tuple[tuple[float, float], ...]

# Pairs (share of the files, what that share does not exceed).
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

# Long lists are literal paths, made by a program.
_LONG_LIST = 100
_LONGEST_WITH_WILDCARDS = 1_000

# Files that name more agents than that shut the others out.
_AGENTS_WITH_RULES = 60

_SHARES_OF_KINDS = (("html", 0.04), ("empty", 0.01), ("no group for all", 0.07))
_SHARE_WITHOUT_RULES = 0.06
_SHARE_OF_FULL_DISALLOW = 0.017
_SHARE_OF_CRLF = 0.32
_SHARE_OF_BYTE_ORDER_MARKS = 0.016
_SHARE_NOT_UTF8 = 0.003
_SHARE_OF_DISALLOW_ONLY = 0.58  # and those of a rule or two, by chance


def made_up_corpus(files: int, *, seed: int = SEED) -> list[bytes]:
    """As many bodies, always the same ones for a seed.

    Args:
        files: how many, ≥ 1.
        seed: another one makes other files of the same shape.
    """
    chance = Random(seed)
    kinds = _kinds(chance, files)
    columns = [
        _spread(quantiles, files, chance)
        for quantiles in (_RULES_FOR_ALL, _OTHER_GROUPS, _COMMENTS, _SITEMAPS)
    ]
    shares = _spread(_SHARE_OF_WILDCARDS, files, chance)
    sizes = iter(_spread(_BYTES_OF_HTML, kinds.count("html"), chance))
    ends = _shuffled(["\r\n"], _SHARE_OF_CRLF, "\n", files, chance)
    bodies = []
    for kind, *numbers, share, end in zip(kinds, *columns, shares, ends, strict=True):
        if kind == "html":
            bodies.append(_page(int(next(sizes)), chance))
        elif kind == "empty":
            bodies.append(b"")
        else:
            rules, others, comments, sitemaps = map(round, numbers)
            lines = [] if kind == "no group for all" else _group(rules, share, chance)
            lines = _with_comments(lines, comments, chance)
            lines += _other_groups(others, chance)
            lines += [
                f"Sitemap: https://www.example.com/{slug(chance)}-{number}.xml"
                for number in range(sitemaps)
            ]
            bodies.append(_octets(lines, end, chance))
    return bodies


def real_corpus(folder: Path, files: int, *, seed: int = SEED) -> list[bytes]:
    """The contents of at most as many files of `folder`, each a robots.txt."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    Random(seed).shuffle(paths)
    return [path.read_bytes() for path in paths[:files]]


def _kinds(chance: Random, files: int) -> list[str]:
    """What each file is; "rules" for most."""
    kinds: list[str] = []
    for kind, share in _SHARES_OF_KINDS:
        kinds += [kind] * round(share * files)
    kinds = kinds[:files] + ["rules"] * (files - len(kinds))
    chance.shuffle(kinds)
    return kinds


def _spread(quantiles: _Quantiles, count: int, chance: Random) -> list[float]:
    """`count` draws from evenly spread places of a distribution, shuffled."""
    draws = [_at((place + 0.5) / count, quantiles) for place in range(count)]
    chance.shuffle(draws)
    return draws


def _at(share: float, quantiles: _Quantiles) -> float:
    """What a share of a distribution does not exceed; geometric between the pairs."""
    above = bisect_right(quantiles, share, key=lambda pair: pair[0])
    if above == len(quantiles):
        return quantiles[-1][1]
    (low_share, low), (high_share, high) = quantiles[above - 1 : above + 1]
    weight = (share - low_share) / (high_share - low_share)
    return exp(log1p(low) * (1 - weight) + log1p(high) * weight) - 1


def _shuffled(
    some: list[str], share: float, rest: str, count: int, chance: Random
) -> list[str]:
    chosen = some * round(share * count)
    chosen += [rest] * (count - len(chosen))
    chance.shuffle(chosen)
    return chosen


def _group(rules: int, share_of_wildcards: float, chance: Random) -> list[str]:
    """The group for all agents, of `rules` rules."""
    lines = ["User-agent: *"]
    if chance.random() < _SHARE_WITHOUT_RULES:
        return [*lines, "Disallow:"]
    if chance.random() < _SHARE_OF_FULL_DISALLOW:
        return [*lines, "Disallow: /"]
    if rules in PLATFORMS and chance.random() < 0.7:
        return [*lines, *PLATFORMS[rules]]
    if rules > _LONGEST_WITH_WILDCARDS:
        share_of_wildcards *= 0.2
    elif rules > _LONG_LIST:
        share_of_wildcards *= 0.6
    is_disallow_only = chance.random() < _SHARE_OF_DISALLOW_ONLY
    share_of_allow = 0.0 if is_disallow_only else chance.uniform(0.02, 0.45)
    if rules > _LONGEST_WITH_WILDCARDS:
        share_of_allow *= 0.02
    folders = [f"/{slug(chance)}/" for _ in range(1 + rules // 40)]
    for number in range(rules):
        kind = "Allow" if chance.random() < share_of_allow else "Disallow"
        pattern = _pattern(rules, number, folders, share_of_wildcards, chance)
        lines.append(f"{kind}: {pattern}")
    if chance.random() < 0.10:
        lines.append(f"Crawl-delay: {chance.choice([1, 2, 5, 10, 30])}")
    return lines


def _pattern(
    rules: int,
    number: int,
    folders: list[str],
    share_of_wildcards: float,
    chance: Random,
) -> str:
    if chance.random() < share_of_wildcards:
        return _wildcard(chance)
    return _literal(rules, number, folders, chance)


def _literal(rules: int, number: int, folders: list[str], chance: Random) -> str:
    """A path; most of those of a long list lie in few folders."""
    if rules > _LONG_LIST and chance.random() < 0.8:
        return f"{chance.choice(folders)}{slug(chance)}-{number}"
    draw = chance.random()
    if draw < 0.01:
        return f"/{word(chance)}%20{word(chance)}/"
    if draw < 0.012:
        return f"/{word(chance)}/über-{word(chance)}"
    if draw < 0.10:
        return f"/{word(chance)}?{word(chance)}="
    if draw < 0.45:
        return f"/{word(chance)}/"
    if draw < 0.60:
        return f"/{word(chance)}"
    if draw < 0.72:
        return (
            f"/{word(chance)}-{word(chance)}.{chance.choice(['html', 'php', 'aspx'])}"
        )
    return f"/{'/'.join(chance.choices(WORDS, k=chance.randint(2, 4)))}/"


_SHAPES = (
    ("/{0}/*.{1}", 20), ("/*.{1}$", 16), ("/{0}/*.{1}?", 8), ("/{0}/*", 14),
    ("/{0}/*/{2}/", 8), ("/*{0}", 8), ("/{0}*", 7), ("/*{0}*", 6), ("/*/{0}/", 8),
    ("*/{0}/", 3), ("/{0}?*{2}=*", 4), ("*&{0}*", 3), ("*?{0}*", 3), ("/*{0}=", 8),
    ("/*?{0}=", 8), ("/*/{0}/{2}/*", 5), ("/*?*{0}=", 4), ("/*?", 2),
)  # fmt: skip


def _wildcard(chance: Random) -> str:
    (shape,) = chance.choices(
        [shape for shape, _ in _SHAPES], [weight for _, weight in _SHAPES]
    )
    ending = chance.choice(["pdf", "php", "html", "jpg", "aspx", "xml", "json"])
    return shape.format(word(chance), ending, word(chance))


def _other_groups(count: int, chance: Random) -> list[str]:
    """Groups for named agents; nine of ten shut the agent out."""
    lines: list[str] = []
    for number in range(count):
        name = f"{word(chance).capitalize()}Bot{'' if number < 20 else number}"
        lines += ["", f"User-agent: {name}"]
        if number >= _AGENTS_WITH_RULES or chance.random() < 0.91:
            lines.append("Disallow: /")
            continue
        rules = max(2, round(min(exp(chance.gauss(2.3, 1.2)), 400)))
        lines += [
            f"Disallow: {_pattern(rules, place, ['/private/'], 0.4, chance)}"
            for place in range(rules)
        ]
    return lines


def _with_comments(lines: list[str], count: int, chance: Random) -> list[str]:
    comments = [f"# {' '.join(chance.choices(WORDS, k=4))}" for _ in range(count)]
    half = count // 2
    blank = [""] * (chance.random() < 0.6)
    return comments[:half] + blank + lines + blank + comments[half:]


def _octets(lines: list[str], end: str, chance: Random) -> bytes:
    text = end.join(lines) + end * (chance.random() < 0.8)
    if chance.random() < _SHARE_NOT_UTF8:
        return f"# robots für alle{end}{text}".encode("latin-1", "replace")
    is_marked = chance.random() < _SHARE_OF_BYTE_ORDER_MARKS
    return text.encode("utf-8-sig" if is_marked else "utf-8")


def _page(size: int, chance: Random) -> bytes:
    """HTML, as servers send that answer every path with a page."""
    lines = ["<!DOCTYPE html>", "<html><head><title>Welcome</title></head><body>"]
    length = sum(map(len, lines))
    while length < size:
        name = word(chance)
        text = " ".join(chance.choices(WORDS, k=8))
        lines.append(
            f'<div class="{name}" style="color: red"><a href="/{name}">{text}</a></div>'
        )
        length += len(lines[-1]) + 1
    return "\n".join([*lines, "</body></html>"]).encode()
