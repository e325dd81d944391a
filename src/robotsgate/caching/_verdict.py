"""The answer to "may this agent fetch this URL?", with all that led to it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.errors import RobotsError
from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from robotsgate.caching._outcome import AccessResult
    from robotsgate.robotstxt._model import Rule


class Reason(enum.Enum):
    """What decided a verdict."""

    ALLOWED_BY_RULE = "allowed-by-rule"
    """An allow line decided; `Verdict.rule` holds it."""
    DISALLOWED_BY_RULE = "disallowed-by-rule"
    """A disallow line decided; `Verdict.rule` holds it."""
    NO_MATCHING_RULE = "no-matching-rule"
    """Allowed, because no rule of the agent's group matches."""
    NO_GROUP = "no-group"
    """Allowed, because the file has no group for the agent, and none for "*"."""
    ROBOTS_TXT = "robots-txt"
    """The URL is /robots.txt itself, which is always allowed (RFC 9309 §2.2.2)."""
    UNAVAILABLE = "unavailable"
    """Allowed, because there is no robots.txt (RFC 9309 §2.3.1.3)."""
    UNREACHABLE = "unreachable"
    """Disallowed, because the origin failed without a copy (RFC 9309 §2.3.1.4)."""
    UNREACHABLE_TOO_LONG = "unreachable-too-long"
    """The origin has failed for longer than `Policy.unreachable_limit`.

    `Policy.after_unreachable_limit` says what is allowed then.
    """
    ADDRESS_REFUSED = "address-refused"
    """Disallowed, because the address guard refused the address of the origin."""
    RESTRICTED = "restricted"
    """Disallowed, because the policy takes the answer for "keep out"."""
    OVERRIDDEN = "overridden"
    """The caller's own file for the origin decided; `Verdict.rule` is its line."""


_SENTENCES = {
    Reason.NO_MATCHING_RULE: "none of the rules for {group} in {file} match",
    Reason.NO_GROUP: "{file} has no group for this agent",
    Reason.ROBOTS_TXT: "robots.txt itself may always be fetched",
    Reason.UNAVAILABLE: "{file} is unavailable ({evidence})",
    Reason.UNREACHABLE: (
        "{file} is unreachable ({evidence}), and there is no usable cached copy"
    ),
    Reason.UNREACHABLE_TOO_LONG: (
        "{file} has been unreachable for too long ({evidence})"
    ),
    Reason.ADDRESS_REFUSED: "{file} was not fetched: {evidence}",
    Reason.RESTRICTED: "access to {file} is restricted ({evidence})",
    Reason.OVERRIDDEN: "none of the rules in the override for {file} match",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(JSONValue):
    """May the agent fetch the URL, and why; true if it may.

    Attributes:
        allowed: whether the agent may fetch the URL.
        url: as the caller gave it, without its userinfo.
        agent: as the caller gave it; a tuple if it was a sequence.
        reason: what decided.
        rule: the allow or disallow line that decided; `None` if none did.
        group: the product token whose groups were used, "*" for the fallback,
            `None` if no group was.
        access: the access result of the answer while it is fresh, else UNREACHABLE;
            SUCCESSFUL for an override.
        is_stale: whether the rules are those of a copy that is used beyond its
            freshness lifetime because the origin is unreachable.
        origin: scheme, host and port, without a default port.
        status: the HTTP status behind `access`, or the FTP reply 226 or 550; `None`
            if there was none.
        redirects: those that the fetch followed, in order: pairs (URL that was
            followed, cut at 2 KB; status of the response that led there).
        error: what went wrong in the fetch; `None` if nothing.
        fetched_at: when the answer that decides was received, epoch seconds;
            `None` if no answer decides.
        fresh_until: until when the verdict holds, epoch seconds; for an unreachable
            origin, when the checker may fetch it again; `None` for an override,
            which holds as long as the checker is open, and from a `RobotsArchive`.
    """

    allowed: bool
    url: str
    agent: str | tuple[str, ...]
    reason: Reason
    rule: Rule | None
    group: str | None
    access: AccessResult
    is_stale: bool
    origin: str
    status: int | None
    redirects: tuple[tuple[str, int], ...]
    error: str | None
    fetched_at: float | None
    fresh_until: float | None

    def __bool__(self) -> bool:
        """Whether the agent may fetch the URL."""
        return self.allowed

    def __str__(self) -> str:
        """One sentence for people, without a final period."""
        sentence = "allowed" if self.allowed else "disallowed"
        file = f"{self.origin}/robots.txt"
        group = "all agents" if self.group == "*" else self.group
        evidence = str(self.status) if self.error is None else self.error
        if self.rule is not None:
            is_override = self.reason is Reason.OVERRIDDEN
            place = f"the override for {file}" if is_override else file
            sentence += f" by line {self.rule.line} ({self.rule}, for {group})"
            sentence += f" of {place}"
        else:
            reason = _SENTENCES[self.reason]
            reason = reason.format(file=file, group=group, evidence=evidence)
            sentence += f": {reason}"
        if self.is_stale and self.reason is not Reason.ROBOTS_TXT:
            sentence += (
                f"; using the cached copy from {date_text(self.fetched_at)},"
                f" because the origin is unreachable ({evidence})"
            )
        return printable(sentence)


class DisallowedError(RobotsError):
    """A URL that robots.txt does not let the agent fetch.

    Attributes:
        verdict: the whole answer, with the rule and the line that decided.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{printable(verdict.url)} is {verdict}")
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return type(self), (self.verdict,)


def printable(text: str) -> str:
    """`text` with characters escaped by which a server could upset a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text
    )


def date_text(epoch_seconds: float | None) -> str:
    """The moment for people, in UTC; "unknown date" for `None`."""
    if epoch_seconds is None:
        return "unknown date"
    from datetime import UTC, datetime  # noqa: PLC0415 (rarely needed)

    try:
        moment = datetime.fromtimestamp(epoch_seconds, UTC)
    except (OverflowError, ValueError, OSError):  # a clock set beyond the year 9999
        return f"epoch second {epoch_seconds:.0f}"
    return moment.isoformat(sep=" ", timespec="seconds")
