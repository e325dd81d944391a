"""Combines all page directives that apply to one agent.

If directives disagree, the most restrictive one applies.
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
    """The page directives that apply to one agent.

    Attributes:
        directives: the most restrictive directive for each name, keyed by name. "all"
            and "none" are replaced by the directives they stand for; "index", "follow"
            and "archive" are omitted if their opposites are present. TDMRep directives
            are named "tdm-reservation" and "tdm-policy"; for these, a tag replaces a
            header.
        diagnostics: problems that the site may want to know about: unknown, repeated or
            contradictory directives; one sentence each, without a final period.
            `from_html` and `from_headers` each keep at most about a hundred.
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
        """Read the META tags in the head of `html`; malformed HTML never raises.

        It reads the tags named "robots", the tags named after `agent`, and TDMRep's
        tags. Tags after the head, or after 2,000,000 bytes, are ignored.

        Args:
            html: the page, as bytes or as decoded text.
            agent: as in `RobotsTxt.can_fetch`; "*" to skip tags named after an agent.
            encoding: the encoding in the Content-Type header. It is overridden by a
                byte order mark, and overrides the encoding declared in the page.

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
        """Read X-Robots-Tag and the TDMRep headers. Malformed headers never raise.

        Headers for all agents apply, as do headers for `agent`, such as
        "googlebot: noindex, nofollow".

        Args:
            headers: response headers from any client. If the client joins repeated
                headers, an agent's name applies to everything that follows it.
            agent: as in `from_html`.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            TypeError: `headers` does not consist of pairs of str.
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
        """Combine these directives with `others`, keeping the strictest for each name.

        Can also be called as `PageDirectives.combined(in_html, in_headers)`.
        """
        pages = (self, *others)
        directives = [one for page in pages for one in page.directives.values()]
        diagnostics = [one for page in pages for one in page.diagnostics]
        return PageDirectives(
            directives=_most_restrictive(directives),
            diagnostics=(*diagnostics, *_contradictions(directives)),
        )

    def may_index(self, now: float) -> bool:
        """Whether the page may be indexed at `now` (epoch seconds).

        Ignores "indexifembedded", which permits a page with "noindex" to be indexed as
        part of another page.
        """
        end = self.directives.get("unavailable_after")
        until = math.inf if end is None else float(end.value or 0)
        return "noindex" not in self.directives and now < until

    @property
    def may_follow(self) -> bool:
        """Whether the links on the page may be followed."""
        return "nofollow" not in self.directives

    @property
    def tdm_reservation(self) -> Preference:
        """Whether TDMRep permits text and data mining of the page.

        DISALLOW if the page reserves these rights ("tdm-policy" may then point to a
        license); ALLOW if it does not; UNKNOWN if it does not specify. The site's
        tdmrep.json file is not read.
        """
        stated = self.directives.get(TDM_RESERVATION)
        if stated is None:
            return Preference.UNKNOWN
        return Preference.DISALLOW if stated.value else Preference.ALLOW

    def explain(self) -> str:
        """All directives and their sources, in one human-readable line."""
        said = [f"{one} in {one.source}" for one in self.directives.values()]
        return "; ".join(said) or "no directives"


def _for_agents(
    value: str, agents: Collection[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """The parts of an X-Robots-Tag that apply to `agents`, as (source, parts) pairs.

    An agent's name applies until the next name. Text before a colon is a name only if a
    directive follows it: "max-foo: 3, noindex" applies to all agents.
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
    """The most restrictive directive for each name; on a tie, the first."""
    result: dict[str, Directive] = {}
    for one in directives:
        known = result.get(one.name)
        if known is None or permissiveness(one) < permissiveness(known):
            result[one.name] = one
    for permission, restriction in _OPPOSITES.items():
        if restriction in result:
            result.pop(permission, None)
    return result
