"""Finds lines in a robots.txt that do not do what they seem to do.

Crawlers don't need this module, so it is imported only when it is used.
"""

import enum
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from robotsgate._public import set_module
from robotsgate.robotstxt._dialect import (
    GOOGLE,
    LONE_PERCENT,
    Grammar,
    as_octets,
    lower,
    readable,
)
from robotsgate.robotstxt._matcher import matches
from robotsgate.robotstxt._model import JSONValue, LineKind, quoted
from robotsgate.robotstxt._parser import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    LICENSE,
    USAGE_FIELDS,
    Outline,
    Records,
    crawl_delay_seconds,
    is_absolute_url,
    is_usable_sitemap,
    request_rate,
    sitemap_urls,
    split_record,
)
from robotsgate.robotstxt._usage_preferences import states_preference


@set_module("robotsgate")
class Severity(enum.Enum):
    """How serious a `Diagnostic` is."""

    ERROR = "error"
    """Crawlers ignore the line, or read it differently than its author meant."""
    WARNING = "warning"
    """The line may not do what its author meant."""
    NOTE = "note"
    """The line is harmless, but may be unnecessary."""


@set_module("robotsgate")
class DiagnosticKind(enum.Enum):
    """The kinds of problems that `RobotsTxt.diagnostics` reports."""

    NO_COLON = "no-colon"
    JOINED_LINES = "joined-lines"
    BARE_URL = "bare-url"
    COMMENT_SIGN = "comment-sign"
    UNKNOWN_FIELD = "unknown-field"
    MISSPELT_FIELD = "misspelt-field"
    RULE_OUTSIDE_GROUP = "rule-outside-group"
    NO_PRODUCT_TOKEN = "no-product-token"
    CUT_PRODUCT_TOKEN = "cut-product-token"
    GROUP_WITHOUT_RULES = "group-without-rules"
    CUT_PATTERN = "cut-pattern"
    UNMATCHABLE_PATTERN = "unmatchable-pattern"
    OPEN_ESCAPE = "open-escape"
    SEVERAL_PATTERNS = "several-patterns"
    DUPLICATE_RULE = "duplicate-rule"
    OVERRULED_RULE = "overruled-rule"
    TIED_RULE = "tied-rule"
    RELATIVE_SITEMAP = "relative-sitemap"
    BAD_SITEMAP = "bad-sitemap"
    SEVERAL_SITEMAPS = "several-sitemaps"
    BAD_CRAWL_DELAY = "bad-crawl-delay"
    BAD_REQUEST_RATE = "bad-request-rate"
    SECOND_RATE = "second-rate"
    BAD_USAGE_PREFERENCE = "bad-usage-preference"
    LINE_CUT = "line-cut"
    FILE_CUT = "file-cut"
    NOT_UTF8 = "not-utf8"
    NUL = "nul"
    BYTE_ORDER_MARK = "byte-order-mark"
    INVISIBLE_CHARACTER = "invisible-character"
    LOOKS_LIKE_HTML = "looks-like-html"


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic(JSONValue):
    """A problem that the file's author may want to know about.

    Attributes:
        line: the line number, starting at 1; 0 for the whole file.
        column: where in the line the problem starts, counting characters from 1; 0
            for the whole line.
        severity: how serious the problem is.
        kind: the kind of problem.
        message: a human-readable sentence, without a final period.
    """

    line: int
    column: int
    severity: Severity
    kind: DiagnosticKind
    message: str


# This many comparisons of a rule with a wildcard take about 50 ms.
_MOST_COMPARISONS = 100_000

# How many characters may be merged beyond the length of the file, when the sections
# of each token are. Parsing them takes up to 0.3 seconds. The maximum in 2,156 real
# files is 5,515.
_MAX_MORE_CHARACTERS = 500_000

_BYTE_ORDER_MARK = "\xef\xbb\xbf"

# A no-break space, a soft hyphen, zero-width characters and directional marks. Joiners
# are part of Persian and Indic words and of emoji, so only those after ASCII count.
_INVISIBLE = re.compile(
    "\xc2[\xa0\xad]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b\x8e\x8f\xaa-\xae]"
    "|\xe2\x81[\xa0-\xa4\xa6-\xa9]|(?<=[\\x00-\\x7f])\xe2\x80[\x8c\x8d]"
)

# What follows the colon distinguishes a directive from a path with such a name.
_DIRECTIVE = re.compile(
    r"(?:user-?agent[ \t]*:|(?:dis)?allow[ \t]*:[ \t]*[/*]|disallow[ \t]*:[ \t]*$"
    r"|sitemap[ \t]*:[ \t]*https?://|(?:crawl-delay|request-rate)[ \t]*:[ \t]*[0-9])",
    re.IGNORECASE | re.MULTILINE,
)
_FIELD_AT_START = re.compile(
    r"[ \t]*(?:user-?agent|disallow|allow|sitemap|crawl-delay|request-rate)[ \t]*:",
    re.IGNORECASE,
)

_BEGINNING_OF_ESCAPE = re.compile(r"%[0-9A-Fa-f]?(?:\*|\Z)")

# A URL may contain two slashes or a semicolon, but no space.
_COMMENT_SIGN = re.compile(r"(?:^|(?<=[ \t]))(?://(?=[ \t])|;)|(?<=[ \t])//")

_SECOND_PATTERN = re.compile(r"(?<=[ \t])/")

_RATES = {
    LineKind.CRAWL_DELAY: (
        crawl_delay_seconds,
        DiagnosticKind.BAD_CRAWL_DELAY,
        "a number of seconds such as 10 or 0.5",
    ),
    LineKind.REQUEST_RATE: (
        request_rate,
        DiagnosticKind.BAD_REQUEST_RATE,
        "a rate such as 1/5 or 10/1m",
    ),
}

_USAGE_EXAMPLES = {
    CONTENT_USAGE: "categories with y or n, such as train-ai=n",
    CONTENT_SIGNAL: "signals such as ai-train=no",
    LICENSE: "an absolute URL",
}

_WITHOUT_EFFECT = {
    DiagnosticKind.DUPLICATE_RULE: "this rule repeats {}",
    DiagnosticKind.TIED_RULE: "{} allows the same URLs, and allow wins a tie",
    DiagnosticKind.OVERRULED_RULE: "{} says the opposite and always wins",
}

# All others are warnings.
_SEVERITIES = {
    DiagnosticKind.JOINED_LINES: Severity.ERROR,
    DiagnosticKind.MISSPELT_FIELD: Severity.ERROR,
    DiagnosticKind.NO_COLON: Severity.ERROR,
    DiagnosticKind.NUL: Severity.ERROR,
    DiagnosticKind.CUT_PRODUCT_TOKEN: Severity.NOTE,
    DiagnosticKind.DUPLICATE_RULE: Severity.NOTE,
    DiagnosticKind.UNKNOWN_FIELD: Severity.NOTE,
}

_Told = tuple[int, int, DiagnosticKind, str]
"""Line, place, kind and message of a `Diagnostic`.

A place is the position of an octet in the line, 1 for the first, or one of the
constants below.
"""

_WHOLE, _FIELD, _VALUE = 0, -1, -2

_Rate = tuple[int, str]  # the line and value of a crawl-delay or request-rate


@dataclass(frozen=True, slots=True)
class _File:
    """A file in which to find problems.

    `lines` has the part of each line that is read, including any comment.
    """

    outline: Outline
    records: Sequence[Records]
    lines: Sequence[str]
    grammar: Grammar


class _Rule(NamedTuple):
    """A rule whose pattern is not empty.

    `text` is the normalized pattern, and `start` the number of lines before its
    section.
    """

    text: str
    is_allow: bool
    line: int
    written: str
    start: int

    def rank(self) -> tuple[int, bool, int]:
        """Of rules that match the same URLs, the one with the highest rank applies.

        The longest wins, then allow, then the first line.
        """
        return len(self.text), self.is_allow, -self.line


def diagnostics(
    outline: Outline,
    records: Sequence[Records],
    text: str,
    grammar: Grammar,
    *,
    is_cut: bool,
    encoding: str | None,
) -> tuple[Diagnostic, ...]:
    """The problems in a file, in line order.

    `records` has one item for the lines before the first section, then one for each
    section. `encoding` is the UTF-16 or UTF-32 encoding indicated by a byte order mark,
    or `None`.
    """
    whole_lines, lines = text.split("\n"), grammar.counted_text(text).split("\n")
    file = _File(outline, records[1:], lines, grammar)
    is_page = text.lstrip()[:1] == "<"
    joined = [*_about_joined_lines(outline, text)]
    told = [
        *_about_the_file(is_page=is_page, is_cut=is_cut, encoding=encoding),
        *_about_octets(whole_lines, lines),
        *_about_lines_outside(records[0]),
        *_about_sections(file),
        *chain.from_iterable(map(_about_values, records)),
        *_about_fields(file, is_alone="\n" not in text.strip(), is_page=is_page),
        *chain.from_iterable(map(_about_sitemaps, records)),
    ]
    # Whatever else is odd about a joined line is a consequence.
    lines_joined = {line for line, *_ in joined}
    told = [*joined, *(one for one in told if one[0] not in lines_joined)]
    result = [_diagnostic(one, whole_lines, grammar) for one in told]
    return tuple(sorted(result, key=attrgetter("line", "column")))


def _diagnostic(told: _Told, lines: Sequence[str], grammar: Grammar) -> Diagnostic:
    line, place, kind, message = told
    return Diagnostic(
        line=line,
        column=_column(lines[line - 1], place, grammar),
        severity=_SEVERITIES.get(kind, Severity.WARNING),
        kind=kind,
        message=message,
    )


def _column(line: str, place: int, grammar: Grammar) -> int:
    """The column of `place` in `line`, starting at 1; 0 for the whole line."""
    if place == _WHOLE:
        return 0
    if place < 0:
        start = line.find(":") + 1 if place == _VALUE else 0
        place = len(line) - len(line[start:].lstrip(grammar.white_space)) + 1
    return len(readable(line[: place - 1])) + 1


def _quote(octets: str) -> str:
    return quoted(readable(octets))


def _about_the_file(
    *, is_page: bool, is_cut: bool, encoding: str | None
) -> Iterator[_Told]:
    if is_cut:
        message = "the file is too long: only its beginning is read"
        yield 0, _WHOLE, DiagnosticKind.FILE_CUT, message
    if encoding is not None:
        message = f"the file is in {encoding}, which many crawlers cannot read"
        yield 0, _WHOLE, DiagnosticKind.NOT_UTF8, message
    if is_page:
        message = "this looks like an HTML page, not a robots.txt"
        yield 0, _WHOLE, DiagnosticKind.LOOKS_LIKE_HTML, message


def _about_octets(lines: Sequence[str], counted: Sequence[str]) -> Iterator[_Told]:
    """Report the first non-UTF-8 line, lines that are cut, and any NUL or BOM."""
    is_told = False
    for number, line in enumerate(lines, 1):
        if not is_told and as_octets(readable(line)) != line:
            is_told = True
            message = "the line contains bytes that are not UTF-8"
            yield number, _WHOLE, DiagnosticKind.NOT_UTF8, message
        length = len(counted[number - 1])
        if length != len(line):
            message = f"only the first {length} bytes of the line are read"
            yield number, length + 1, DiagnosticKind.LINE_CUT, message
        if "\0" in line:
            message = "NUL byte, where some crawlers end the line"
            yield number, line.index("\0") + 1, DiagnosticKind.NUL, message
        if _BYTE_ORDER_MARK in line:
            place = line.index(_BYTE_ORDER_MARK) + 1
            message = "byte order mark that is not at the start of the file"
            yield number, place, DiagnosticKind.BYTE_ORDER_MARK, message
        if not line.isascii():
            yield from _about_invisible(line, number)


def _about_invisible(line: str, number: int) -> Iterator[_Told]:
    """Report the first invisible character in a record whose field is known."""
    record = line.partition("#")[0]
    match = _INVISIBLE.search(record)
    if match is None:
        return
    key = lower(_INVISIBLE.sub("", record.partition(":")[0])).strip()
    if GOOGLE.field(key) is LineKind.OTHER:
        return
    code = f"U+{ord(readable(match[0])):04X}"
    message = f"crawlers read the invisible character {code} as part of the line:"
    message += " delete it"
    yield number, match.start() + 1, DiagnosticKind.INVISIBLE_CHARACTER, message


def _about_joined_lines(outline: Outline, text: str) -> Iterator[_Told]:
    alone = text.strip()
    if "\n" not in alone and len(_DIRECTIVE.findall(alone)) > 1:
        number = text[: text.find(alone)].count("\n") + 1
        message = "the whole file is on one line: put each directive on its own line"
        yield number, _WHOLE, DiagnosticKind.JOINED_LINES, message
        return
    for number, line in enumerate(outline.text.split("\n")):
        field = _FIELD_AT_START.match(line)
        match = field and _DIRECTIVE.search(line, field.end())
        if match:
            directive = _quote(line[match.start() :])
            message = f"{directive} is read as part of this line: start a new line"
            message += " there"
            yield number, match.start() + 1, DiagnosticKind.JOINED_LINES, message


def _about_agents(file: _File) -> Iterator[_Told]:
    for section in file.outline.sections:
        for token, line in section.agents:
            value = file.lines[line - 1].partition("#")[0].partition(":")[2]
            value = value.strip(file.grammar.white_space)
            if not token:
                message = f"{_quote(value)} is not a product token"
                yield line, _VALUE, DiagnosticKind.NO_PRODUCT_TOKEN, message
            elif value and readable(value).lower() != token:
                message = f"{_quote(value)} is read as {token!r}"
                yield line, _VALUE, DiagnosticKind.CUT_PRODUCT_TOKEN, message


def _about_sections(file: _File) -> Iterator[_Told]:
    agents = [*_about_agents(file)]
    cut = {one[0] for one in agents if one[2] is DiagnosticKind.CUT_PRODUCT_TOKEN}
    rules = [
        _rules(read, section.lines_before, file.grammar)
        for section, read in zip(file.outline.sections, file.records, strict=True)
    ]
    closing = {
        rule.line
        for rule in chain.from_iterable(rules)
        if not rule.is_allow and rule.text.rstrip("*") in {"", "/"}
    }
    merged = [*_about_merged_rules(file.outline, rules, closing, cut)]
    closing -= {line for line, *_ in merged}
    yield from (*agents, *merged)
    yield from _about_groups(file, closing)
    yield from _about_second_rates(file)
    for rule in chain.from_iterable(rules):
        yield from _about_rule(rule, file)


def _about_groups(file: _File, closing: set[int]) -> Iterator[_Told]:
    """Report runs of user-agent lines that seem to be two groups, but are one.

    Other records stand between them, or just a gap, if the rules then close the site.
    """
    for section, read in zip(file.outline.sections, file.records, strict=True):
        if not (read.disallows or read.allows):
            continue
        between = [line for _, _, line in (*read.rates, *read.others)]
        between = sorted([*between, *(line for _, line in read.sitemaps)])
        closes = next((one for one in read.disallow_lines if one in closing), None)
        start = section.agents[0][1]
        for (token, line), (next_token, next_line) in pairwise(section.agents):
            has_records = bisect(between, line) != bisect(between, next_line)
            has_gap = next_line > line + 1 and (token == "*") != (next_token == "*")
            if not has_records and not (has_gap and closes):
                continue
            message = "this group has no rules of its own, so the rules below"
            message += f" line {next_line} apply to it as well"
            if closes:
                agent = "all agents" if token == "*" else quoted(token)
                message += f", and line {closes} closes the site for {agent}"
            message += ": to keep the groups apart, put an empty 'Disallow:' below"
            message += f" line {line}"
            yield start, _WHOLE, DiagnosticKind.GROUP_WITHOUT_RULES, message
            start = next_line


def _about_lines_outside(records: Records) -> Iterator[_Told]:
    """Report lines above all groups that apply only within a group."""
    named = [(line, "rule") for _, _, line in records.rules()]
    named += [(line, field.value) for field, _, line in records.rates]
    named += [(line, key) for key, _, line in records.others if key == CONTENT_USAGE]
    for line, name in named:
        message = f"a {name} before the first user-agent line applies to no agent:"
        message += " move it below one"
        yield line, _WHOLE, DiagnosticKind.RULE_OUTSIDE_GROUP, message


def _rules(records: Records, start: int, grammar: Grammar) -> list[_Rule]:
    rules = [rule for rule in records.rules() if rule[0]]
    spelt = grammar.spelling("\n".join(written for written, _, _ in rules)).split("\n")
    return [
        _Rule(text, is_allow, line, written, start)
        for (written, is_allow, line), text in zip(rules, spelt, strict=False)
    ]


def _about_rule(rule: _Rule, file: _File) -> Iterator[_Told]:
    line = file.lines[rule.line - 1]
    before, sign, _ = line.partition("#")
    if sign and before[-1] not in file.grammar.white_space:
        message = f"'#' starts a comment, so the pattern is {_quote(rule.written)}"
        yield rule.line, len(before) + 1, DiagnosticKind.CUT_PATTERN, message
    start = line.find(rule.written, line.find(":") + 1) + 1
    for place, kind, message in _about_pattern(rule.written, rule.text):
        yield rule.line, start + place, kind, message


def _about_pattern(
    pattern: str, spelt: str
) -> Iterator[tuple[int, DiagnosticKind, str]]:
    """The problems of a pattern, with their index in it."""
    escape = LONE_PERCENT.search(pattern)
    if escape:
        effect = "URLs in which it is sent as %25 do not match"
        if _BEGINNING_OF_ESCAPE.match(pattern, escape.start()):
            effect = "it also matches the start of an escape such as %20"
        message = f"the '%' in {_quote(pattern)} is not followed by two hexadecimal"
        message += f" digits, so {effect}: write %25 for a percent sign"
        yield escape.start(), DiagnosticKind.OPEN_ESCAPE, message
    comment = _COMMENT_SIGN.search(pattern)
    second = _SECOND_PATTERN.search(pattern)
    if comment:
        message = f"only '#' starts a comment, so the pattern is {_quote(pattern)}"
        message += ": write '#' instead"
        yield comment.start(), DiagnosticKind.COMMENT_SIGN, message
    elif second:
        message = f"{_quote(pattern)} is one pattern, which contains a space: to"
        message += " specify several patterns, give each its own line"
        yield second.start(), DiagnosticKind.SEVERAL_PATTERNS, message
    literal = spelt.partition("*")[0].partition("?")[0]
    if pattern[0] not in "/*":
        message = f"{_quote(pattern)} does not start with / or *, so it matches nothing"
        yield 0, DiagnosticKind.UNMATCHABLE_PATTERN, message
    elif (
        "/./" in literal
        or "/../" in literal
        or (literal == spelt and spelt.endswith(("/.$", "/..$")))
    ):
        message = f"{_quote(pattern)} contains a dot segment, which few URLs do"
        yield 0, DiagnosticKind.UNMATCHABLE_PATTERN, message


def _about_merged_rules(
    outline: Outline, rules: Sequence[Sequence[_Rule]], closing: set[int], cut: set[int]
) -> Iterator[_Told]:
    """Report rules without effect once the groups of each token are merged.

    A rule that only repeats another is reported if it does so for all tokens of its
    group. In another group, which may be for a crawler with a similar name, a token
    must also be written in full; `cut` has the lines of those that are not.
    """
    cut_groups = {
        section.lines_before
        for section in outline.sections
        if cut.issuperset(line for _, line in section.agents)
    }
    repeated = DiagnosticKind.DUPLICATE_RULE
    to_merge = _sections_to_merge(outline)
    times = Counter(start for _, own_starts in to_merge for start in own_starts)
    by_start = {own[0].start: own for own in rules if own}
    for rule, cases in _cases_without_effect(to_merge, by_start).items():
        kind, other, token = min(cases, key=lambda one: one[0] is repeated)
        is_merged = rule.start != other.start
        if kind is repeated and (
            len(cases) < times[rule.start]
            or (is_merged and cut_groups.intersection((rule.start, other.start)))
        ):
            continue
        group = f" (in another group for {quoted(token)})" if is_merged else ""
        message = _WITHOUT_EFFECT[kind].format(f"line {other.line}{group}")
        if rule.line in closing and kind is DiagnosticKind.TIED_RULE:
            message += ", so this line does not close the site"
        message += ": merge the groups and" if is_merged else ":"
        yield rule.line, _WHOLE, kind, f"{message} remove one of the two lines"


def _cases_without_effect(
    to_merge: Iterable[tuple[str, Sequence[int]]],
    by_start: Mapping[int, Sequence[_Rule]],
) -> dict[_Rule, list[tuple[DiagnosticKind, _Rule, str]]]:
    """For each rule without effect: why, the rule that applies, and for which token."""
    result: dict[_Rule, list[tuple[DiagnosticKind, _Rule, str]]] = {}
    comparisons = _MOST_COMPARISONS
    for token, starts in to_merge:
        rules = [rule for start in starts for rule in by_start.get(start, ())]
        wildcards = [
            rule for rule in rules if "*" in rule.text and not rule.text.endswith("$")
        ]
        comparisons -= len(wildcards) * len(rules)
        for rule, kind, other in _without_effect(
            rules, wildcards if comparisons >= 0 else ()
        ):
            result.setdefault(rule, []).append((kind, other, token))
    return result


def _sections_to_merge(outline: Outline) -> list[tuple[str, Sequence[int]]]:
    """A token and the starts of its sections, once for each combination of sections.

    Sections that overlap too much are not merged.
    """
    token_by_starts: dict[tuple[int, ...], str] = {}
    for token, sections in outline.by_token.items():
        if token:
            starts = tuple(section.lines_before for section in sections)
            token_by_starts.setdefault(starts, token)
    sizes = {one.lines_before: one.end - one.start for one in outline.sections}
    characters = sum(sizes[start] for starts in token_by_starts for start in starts)
    if characters > len(outline.text) + _MAX_MORE_CHARACTERS:
        return [("", [start]) for start in sizes]
    return [(token, starts) for starts, token in token_by_starts.items()]


def _without_effect(
    rules: Sequence[_Rule], wildcards: Iterable[_Rule]
) -> Iterator[tuple[_Rule, DiagnosticKind, _Rule]]:
    """Each rule without effect, why it has none, and the rule that applies."""
    winners: dict[str, _Rule] = {}
    for rule in rules:
        key = rule.text.rstrip("*") or "/"
        known = winners.setdefault(key, rule)
        if known is not rule and known.rank() < rule.rank():
            winners[key] = rule
    seen: dict[tuple[str, bool], _Rule] = {}
    for rule in rules:
        text, is_allow, *_ = rule
        first = seen.setdefault((text, is_allow), rule)
        if first is not rule:
            yield rule, DiagnosticKind.DUPLICATE_RULE, first
            continue
        winner = winners[text.rstrip("*") or "/"]
        if is_allow == winner.is_allow and not text.endswith("$") and "*" not in text:
            # A wildcard that matches the pattern matches every target that the pattern
            # matches.
            others = [other for other in wildcards if matches(other.text, text)]
            winner = max([winner, *others], key=_Rule.rank) if others else winner
        if is_allow != winner.is_allow:
            is_tie = len(winner.text) == len(text)
            kind = DiagnosticKind.TIED_RULE if is_tie else DiagnosticKind.OVERRULED_RULE
            yield rule, kind, winner


def _about_second_rates(file: _File) -> Iterator[_Told]:
    """Report rates without effect, because an agent's first rate applies to it."""
    for field, (parsed, *_) in _RATES.items():
        firsts: dict[str, _Rate] = {}
        for section, read in zip(file.outline.sections, file.records, strict=True):
            rates = [(line, value) for kind, value, line in read.rates if kind is field]
            for first, second in _second_rates(section.agents, rates, firsts):
                if parsed(first[1]) == parsed(second[1]):
                    continue
                message = f"line {first[0]} already sets the {field.value}, so this"
                message += " line has no effect: remove one of the two lines"
                yield second[0], _WHOLE, DiagnosticKind.SECOND_RATE, message


def _second_rates(
    agents: Sequence[tuple[str, int]], rates: Iterable[_Rate], firsts: dict[str, _Rate]
) -> Iterator[tuple[_Rate, _Rate]]:
    """The rates of a section that no agent uses, each after one that applies.

    `firsts` has the first rate of each token; those of the section are added.
    """
    rest = [*reversed(agents)]
    first = (0, "")
    for rate in rates:
        while rest and rest[-1][1] < rate[0]:
            token, _ = rest.pop()
            first = max(first, firsts.setdefault(token, rate) if token else rate)
        if first < rate:
            yield first, rate


def _about_values(records: Records) -> Iterator[_Told]:
    for field, value, line in records.rates:
        parsed, kind, expected = _RATES[field]
        if parsed(value) is None:
            yield line, _VALUE, kind, f"expected {expected}, got {_quote(value)}"
    for key, value, line in records.others:
        if key in USAGE_FIELDS and not states_preference(key, value):
            message = f"expected {_USAGE_EXAMPLES[key]}, got {_quote(value)}"
            yield line, _VALUE, DiagnosticKind.BAD_USAGE_PREFERENCE, message


def _about_fields(file: _File, *, is_alone: bool, is_page: bool) -> Iterator[_Told]:
    """Report lines without a known field.

    `is_alone` if the file has just one line, and `is_page` if it is an HTML page, in
    which scripts have comments.
    """
    grammar = file.grammar
    for number, line in enumerate(file.lines, 1):
        record = line.partition("#")[0]
        key, _ = split_record(record, grammar)
        if not record.strip(grammar.white_space) or _is_known(key, record, grammar):
            continue
        record = record.lstrip()
        if record.startswith(("//", ";")) and not is_page:
            message = "only '#' starts a comment: put it at the start of the line"
            yield number, _FIELD, DiagnosticKind.COMMENT_SIGN, message
        elif record.startswith(("http://", "https://")) and not is_page:
            message = "a URL alone has no effect: for a sitemap, write 'Sitemap:'"
            message += " before it"
            if is_alone:
                message += "; to use the rules at that URL, redirect to it"
            yield number, _FIELD, DiagnosticKind.BARE_URL, message
        else:
            yield number, _FIELD, *_about_field(key, record)


def _is_known(key: str, record: str, grammar: Grammar) -> bool:
    """Whether `key` is spelt in full, and a colon follows it."""
    field = grammar.field(key)
    is_own = field is not LineKind.OTHER and key == field.value
    return ":" in record and (is_own or key in USAGE_FIELDS)


def _about_field(key: str, record: str) -> tuple[DiagnosticKind, str]:
    if key and ":" in record:
        if GOOGLE.field(key.replace("_", "-")) is LineKind.OTHER:
            return DiagnosticKind.UNKNOWN_FIELD, f"unknown field {_quote(key)}"
        message = f"only lenient crawlers understand {_quote(key)}"
        return DiagnosticKind.MISSPELT_FIELD, message
    words = None if ":" in record else GOOGLE.split_without_colon(record)
    if words and GOOGLE.field(lower(words[0])) is not LineKind.OTHER:
        return DiagnosticKind.NO_COLON, f"expected a colon after {_quote(words[0])}"
    return DiagnosticKind.NO_COLON, "expected a field, a colon and a value"


def _about_sitemaps(records: Records) -> Iterator[_Told]:
    for written, line in records.sitemaps:
        value = readable(written)
        if not is_absolute_url(value):
            message = "a sitemap must be an absolute URL"
            yield line, _VALUE, DiagnosticKind.RELATIVE_SITEMAP, message
            continue
        urls = sitemap_urls(value)
        if len(urls) > 1:
            message = "several sitemaps on one line, which many crawlers read as one"
            message += " URL: give each its own line"
            yield line, _VALUE, DiagnosticKind.SEVERAL_SITEMAPS, message
        broken = next((url for url in urls if not is_usable_sitemap(url)), None)
        if broken is not None:
            message = "expected a URL with a full host name, such as"
            message += f" https://example.com/sitemap.xml, got {quoted(broken)}"
            yield line, _VALUE, DiagnosticKind.BAD_SITEMAP, message
