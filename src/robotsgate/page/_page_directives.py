"""Decides what a page lets an agent do with it, from all that the page states.

If statements disagree, the most restrictive one counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.page._directive import (
    NAMES,
    TDM_NAMES,
    TDM_RESERVATION,
    VALUES,
    directives_in,
    name_of,
    note,
    permissiveness,
    tdm_directives,
)
from robotsgate.page._head import meta_tags
from robotsgate.robotstxt._headers import headers_named
from robotsgate.robotstxt._model import JSONValue
from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.robotstxt._usage_preferences import Preference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from robotsgate.page._directive import Directive
    from robotsgate.robotstxt._headers import HeadersLike

_OPPOSITES = {"index": "noindex", "follow": "nofollow", "archive": "noarchive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDirectives(JSONValue):
    """What a page lets one agent do with it.

    Attributes:
        directives: by name, the most restrictive directive of each name.
            "all" and "none" are replaced by the directives that they stand for;
            "index", "follow" and "archive" are left out if their opposites are there.
            Those of TDMRep have the names "tdm-reservation" and "tdm-policy"; a tag
            takes the place of a header there.
        diagnostics: what the site may want to know, one sentence each, without a
            final period: directives that are unknown, repeated or contradicted. At
            most about a hundred.
    """

    directives: Mapping[str, Directive]
    diagnostics: tuple[str, ...]

    @classmethod
    def from_html(
        cls,
        html: bytes | str,
        agent: str | Sequence[str],
        *,
        encoding: str | None = None,
    ) -> PageDirectives:
        """What the META tags in the head of `html` say; no content raises an error.

        The tags named "robots" count, those that name `agent`, and those of TDMRep. At
        most 2,000,000 bytes are read, and nothing after the head.

        Args:
            html: the page, decoded or not.
            agent: as in `RobotsTxt.can_fetch`; "*" for the tags named "robots" alone.
            encoding: the one in the header Content-Type. A byte order mark overrides
                it; it overrides the encoding that the page itself declares.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            TypeError: `html` is neither bytes nor str.
        """
        if not isinstance(html, bytes | str):
            raise TypeError(
                f"expected html to be bytes or str, got {type(html).__name__}"
            )
        names = {"robots", *product_tokens(agent), *TDM_NAMES}
        tags, is_whole = meta_tags(html, names, encoding=encoding)
        message = "the head is too long: only its beginning is read"
        diagnostics = [] if is_whole else [message]
        directives: list[Directive] = []
        for name, content in tags:
            source = f'<meta name="{name}">'
            if name in TDM_NAMES:
                directives += tdm_directives(name, content, source, diagnostics)
            else:
                directives += directives_in(content.split(","), source, diagnostics)
        return _page_directives(directives, diagnostics)

    @classmethod
    def from_headers(
        cls, headers: HeadersLike, agent: str | Sequence[str]
    ) -> PageDirectives:
        """What X-Robots-Tag and the headers of TDMRep say; no content raises an error.

        The headers for all agents count, and those that name `agent`, as in
        "googlebot: noindex, nofollow".

        Args:
            headers: those of the response, as a client gives them. If a client joins
                headers of one name, the name of an agent holds for all that follows.
            agent: as in `from_html`.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            TypeError: `headers` does not hold pairs of text.
        """
        agents = {"*", "robots", *product_tokens(agent)}
        diagnostics: list[str] = []
        directives: list[Directive] = []
        for name, value in headers_named(headers, ("x-robots-tag", *TDM_NAMES)):
            if name in TDM_NAMES:
                source = f"the header {name}"
                directives += tdm_directives(name, value, source, diagnostics)
                continue
            for source, parts in _for_agents(value, agents):
                directives += directives_in(parts, source, diagnostics)
        return _page_directives(directives, diagnostics)

    def combined(self, *others: PageDirectives) -> PageDirectives:
        """These directives and those of `others`: of each name the most restrictive.

        `PageDirectives.combined(of_html, of_headers)` does the same.
        """
        pages = (self, *others)
        directives = [one for page in pages for one in page.directives.values()]
        diagnostics = [one for page in pages for one in page.diagnostics]
        return PageDirectives(
            directives=_most_restrictive(directives),
            diagnostics=(*diagnostics, *_contradictions(directives)),
        )

    def may_index(self, now: float) -> bool:
        """Whether the page may be indexed at `now`, epoch seconds.

        Does not look at "indexifembedded", by which a page that has "noindex" may be
        indexed as a part of another one.
        """
        end = self.directives.get("unavailable_after")
        until = math.inf if end is None else float(end.value or 0)
        return "noindex" not in self.directives and now < until

    @property
    def may_follow(self) -> bool:
        """Whether the links of the page may be followed."""
        return "nofollow" not in self.directives

    @property
    def tdm_reservation(self) -> Preference:
        """Whether the page may be mined for text and data, by TDMRep.

        DISALLOW if it reserves these rights, which "tdm-policy" may license; ALLOW if
        not; UNKNOWN if it does not say. The file tdmrep.json of a site is not read.
        """
        stated = self.directives.get(TDM_RESERVATION)
        if stated is None:
            return Preference.UNKNOWN
        return Preference.DISALLOW if stated.value else Preference.ALLOW

    def explain(self) -> str:
        """Each directive and its source, in one line for people."""
        said = [f"{one} in {one.source}" for one in self.directives.values()]
        return "; ".join(said) or "no directives"


def _for_agents(
    value: str, agents: Collection[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """The parts of an X-Robots-Tag that are for `agents`, each run with its source.

    The name of an agent holds until the next one. The text before a colon is a name
    only if a directive follows it: all of "max-foo: 3, noindex" is for all agents.
    """
    source = "X-Robots-Tag"
    is_for_us = True
    parts: list[str] = []
    for part in value.split(","):
        name, _, rest = part.partition(":")
        name = name.strip().lower()
        if name not in VALUES and name_of(rest) in NAMES:
            if is_for_us:
                yield source, parts
            source, is_for_us = f"X-Robots-Tag: {name}", name in agents
            parts = [rest]
        else:
            parts.append(part)
    if is_for_us:
        yield source, parts


def _page_directives(
    directives: Sequence[Directive], diagnostics: list[str]
) -> PageDirectives:
    names: set[str] = set()
    for one in directives:
        if one.name in names:
            note(diagnostics, f"{one.name!r} is repeated in {one.source}")
        names.add(one.name)
    return PageDirectives(
        directives=_most_restrictive(directives),
        diagnostics=(*diagnostics, *_contradictions(directives)),
    )


def _contradictions(directives: Sequence[Directive]) -> list[str]:
    first = {one.name: one for one in reversed(directives)}
    return [
        f"{permission!r} in {first[permission].source} contradicts"
        f" {restriction!r} in {first[restriction].source}, which takes precedence"
        for permission, restriction in _OPPOSITES.items()
        if permission in first and restriction in first
    ]


def _most_restrictive(directives: Iterable[Directive]) -> dict[str, Directive]:
    """The most restrictive directive of each name; of equal ones the first."""
    result: dict[str, Directive] = {}
    for one in directives:
        known = result.get(one.name)
        if known is None or permissiveness(one) < permissiveness(known):
            result[one.name] = one
    for permission, restriction in _OPPOSITES.items():
        if restriction in result:
            result.pop(permission, None)
    return result
