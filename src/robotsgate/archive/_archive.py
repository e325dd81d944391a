"""Archived robots.txt responses, and pure lookups in them, which `caching` interprets.

The path of a check that two dictionary lookups cannot answer: `Question.of` → `find` →
the outcome of a fetch → `entry_after` → `Standing` → `StandingFor` → the result.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, cast

from robotsgate._public import set_module
from robotsgate.caching._entry import entry_after
from robotsgate.caching._hops import AddressRefusedError, FetchGuard, Hops
from robotsgate.caching._live import LiveOrigins
from robotsgate.caching._outcome import (
    FailureKind,
    Outcome,
    access_result,
    is_wall,
    judge,
)
from robotsgate.caching._policy import AccessResult, Policy
from robotsgate.caching._question import (
    Agent,
    Question,
    check_bound,
    check_policy,
    check_urls,
)
from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt._dialect import Dialect, grammar_of, is_plain
from robotsgate.robotstxt._headers import pairs_of
from robotsgate.urls._url import (
    Origin,
    is_redirect,
    is_url_like,
    split_url,
    target_of,
    without_userinfo,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate.caching._live import Standing, StandingFor
    from robotsgate.caching._verdict import Verdict
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._matcher import RuleSet
    from robotsgate.robotstxt._usage_preferences import UsagePreferences
    from robotsgate.urls._url import URLLike

_OK = 200

_NO_DATE = -1.0  # of a response without one: earlier than any real date


@set_module("robotsgate")
@dataclass(frozen=True, slots=True)
class ArchivedResponse:
    """One archived response to a GET of a robots.txt.

    Attributes:
        status: 100 to 999; for FTP, the reply code (226 or 550); `None` if the capture
            is unreadable, for which a `RobotsArchive` returns `None`.
        headers: (name, value) pairs in the order they were received; a mapping is also
            accepted. Only Location and Retry-After can affect a result.
        body: the content, with any chunking and compression removed. The body may be
            truncated after `Policy.max_body_bytes`.
        redirects: the redirects that led to this response, in order, as pairs (absolute
            target URL, status from 300 to 399), like `Verdict.redirects`. Not needed if
            the redirect responses are archived too, because `RobotsArchive` follows
            those itself.
        fetched_at: when the response was received, in epoch seconds, ≥ 0; `None` if
            unknown.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a number is out of range.
    """

    status: int | None
    headers: HeadersLike = ()
    body: bytes = field(default=b"", repr=False)
    redirects: Sequence[tuple[str, int]] = ()
    fetched_at: float | None = None

    def __post_init__(self) -> None:
        """Check each value."""
        if self.status is not None:
            check_bound("status", self.status, lowest=100, highest=999)
        object.__setattr__(self, "headers", tuple(pairs_of(self.headers)))
        if not isinstance(self.body, bytes):
            raise TypeError(
                f"expected body to be bytes, got {type(self.body).__name__}"
            )
        object.__setattr__(self, "redirects", tuple(map(_redirect, self.redirects)))
        if self.fetched_at is not None:
            _check_date(self.fetched_at)


@set_module("robotsgate.archive")
def last_capture(
    captures: Iterable[ArchivedResponse],
    *,
    as_of: float | None = None,
    policy: Policy = Policy(),
) -> ArchivedResponse | None:
    """The last capture of an origin, or the last good copy before an outage.

    A capture that means "unreachable" under `policy`, such as a 429 or 5xx, is skipped
    if the last other capture was successful and is at most `Policy.stale_window` older,
    because a crawler would have used its cached copy. Nothing is skipped if the policy
    has an `outage_grace`. An unreadable capture counts as successful.

    Args:
        captures: the captures of one origin, in any order; among captures with the same
            date, the last one counts as the latest.
        as_of: a date in epoch seconds; captures that are later or have no date are
            ignored. With `None`, all captures are used, and those without a date count
            as the oldest.
        policy: the `RobotsArchive`'s policy.

    Returns:
        One of `captures`, or `None` if there are none to choose from.
    """
    in_order = sorted(
        (one for one in captures if as_of is None or 0 <= _date_of(one) <= as_of),
        key=_date_of,
    )
    if not in_order:
        return None
    last = in_order[-1]
    answers = (
        one
        for one in reversed(in_order)
        if _access(one, policy) is not AccessResult.UNREACHABLE
    )
    answer = next(answers, last)
    is_copy = (
        _access(answer, policy) is AccessResult.SUCCESSFUL
        and _date_of(last) - _date_of(answer) <= policy.stale_window
    )
    keeps_copies = policy.stale_window > 0 and policy.outage_grace == 0
    return answer if is_copy and keeps_copies else last


@set_module("robotsgate")
class RobotsArchive:
    """Checks URLs against archived robots.txt responses.

    The archive returns what a `RobotsChecker` with the same policy and an empty store
    would have returned at the time of the fetch, so nothing is stale and nothing
    expires. `None` always means that nothing readable is archived for the origin.

    An archive can be shared between threads. A pickled archive includes `find` and the
    settings but no parsed files, so it is cheap to send to worker processes.
    """

    def __init__(
        self,
        find: Callable[[str], ArchivedResponse | bytes | None]
        | Mapping[str, ArchivedResponse | bytes],
        *,
        policy: Policy = Policy(),
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
    ) -> None:
        """Create an archive without calling `find`.

        Args:
            find: a function that takes an origin such as "https://example.com"
                (`str(Origin.from_url(url))`) and returns the archived response to a GET
                of its /robots.txt, or just the body if the status was 200, or `None` if
                nothing is archived. `find` is called again for an origin only after the
                origin has been dropped from memory, or to follow a redirect to that
                origin's /robots.txt; any other redirect makes the original origin
                unreachable. Exceptions propagate. `find` may be called from several
                threads at once. A mapping from origins to their responses is accepted
                instead of a function.
            policy: how to treat status codes. Settings for lifetimes and retries have
                no effect.
            dialect: the dialect for parsing robots.txt.
            max_origins: the maximum number of parsed origins to keep in memory, ≥ 1;
                fewer are kept if their files are very large. The least recently used
                origins are dropped first.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: `max_origins` is less than 1, or the first key of the mapping
                is not an origin.
        """
        if isinstance(find, Mapping):
            _check_keys(find)
        elif not callable(find):
            raise TypeError(
                f"expected find to be a function or a mapping, got"
                f" {type(find).__name__}"
            )
        check_policy(policy)
        check_bound("max_origins", max_origins)
        self._find = find
        self._policy = policy
        self._dialect = dialect
        self._max_origins = max_origins
        self._grammar = grammar_of(dialect)
        self._live = LiveOrigins(
            max_origins=max_origins, policy=policy, dialect=dialect
        )
        self._by_agent = self._live.by_agent
        self._not_archived: set[str] = set()
        self._lock = Lock()  # held for everything except dictionary lookups

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments."""
        made_by = partial(
            type(self),
            policy=self._policy,
            dialect=self._dialect,
            max_origins=self._max_origins,
        )
        return made_by, (self._find,)

    def __repr__(self) -> str:
        """The archive, without `find`, which may contain secrets."""
        return f"<robotsgate.RobotsArchive live_origins={len(self._live.by_origin)}>"

    def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """Whether `agent` was allowed to fetch `url`; `None` if nothing is archived.

        /robots.txt itself is allowed if anything is archived for the origin.

        Args:
            agent: a product token, a whole User-Agent header that names a crawler,
                "*" for just the fallback group, or a sequence of these, most specific
                first; the first one with a group is used.
            url: an absolute URL, as a `str` or as an object whose `str()` is a URL.

        Raises:
            InvalidProductTokenError: `agent` does not name a crawler (for example, it
                is a browser's User-Agent string), or the arguments are swapped.
            InvalidURLError: `url` has no origin.
            TypeError: `find` returned a value of the wrong type.
        """
        answer = self._at_once(agent, url)
        if answer is None:
            answer = self._allows(Question.of(agent, url, self._grammar))
        return answer

    def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[str | URLLike]
    ) -> list[bool | None]:
        """Call `can_fetch` for many URLs, and return the results in order.

        The result for a URL without an origin is `False`. With more than `max_origins`
        origins, this is fast only if the URLs are grouped by origin.

        Raises:
            InvalidProductTokenError: as in `can_fetch`.
            InvalidURLError: an item of `urls` is neither a str nor a URL object.
            TypeError: `urls` is a single URL or is not iterable; or as in `can_fetch`.
        """
        check_urls(urls, agent=agent)
        Agent.of(agent)
        answers: list[bool | None] = []
        for url in urls:
            answer = self._at_once(agent, url)
            if answer is None:
                try:
                    question = Question.of(agent, url, self._grammar)
                except InvalidURLError:
                    if not is_url_like(url):
                        raise
                    answer = False
                else:
                    answer = self._allows(question)
            answers.append(answer)
        return answers

    def check(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict | None:
        """Like `can_fetch`, but returns a `Verdict`; raises the same errors.

        `Verdict.fetched_at` is the date of the response that `find` returned for the
        origin of `url`, or `None` if the origin is unreachable. `Verdict.fresh_until`
        is always `None`.
        """
        question = Question.of(agent, url, self._grammar)
        known = self._known(question.origin, [question.agent])
        if known is None:
            return None
        standing, (rules,) = known
        verdict = rules.explain(standing, question, policy=self._policy)
        date = verdict.fetched_at
        return replace(
            verdict, fetched_at=None if date == _NO_DATE else date, fresh_until=None
        )

    def refused_agents(
        self, agents: Iterable[str], url: str | URLLike
    ) -> tuple[str, ...] | None:
        """The `agents` that were not allowed to fetch `url`, in order.

        This is faster than calling `can_fetch` for each agent: the file is parsed once,
        and the URL is matched only once for agents that share a group. Raises the same
        errors as `can_fetch`, and a TypeError if `agents` is a single agent or is not
        iterable.

        Returns:
            The disallowed agents, exactly as passed; an empty tuple if there are none;
            `None` if nothing is archived.
        """
        if isinstance(agents, str | bytes) or not isinstance(agents, Iterable):
            shown = without_userinfo(repr(agents))
            raise TypeError(f"expected several agents, got {shown}")
        names = tuple(agents)
        known_agents = [Agent.of(name) for name in names]
        origin, target = split_url(url)
        known = self._known(origin, known_agents)
        if known is None:
            return None
        readings = self._grammar.readings_of(target)
        answers: dict[RuleSet, bool] = {}
        refused = []
        for name, one in zip(names, known[1], strict=True):
            if one.rules not in answers:
                answers[one.rules] = one.allows(readings)
            if not answers[one.rules]:
                refused.append(name)
        return tuple(refused)

    def usage_preferences(
        self,
        agent: str | Sequence[str],
        url: str | URLLike,
        *,
        headers: HeadersLike | None = None,
    ) -> UsagePreferences | None:
        """The preferences for how `url` may be used; `None` if nothing is archived.

        If `agent` was not allowed to fetch `url`, all preferences are unknown. If you
        have the page's archived `headers`, pass them, because they may also contain
        Content-Usage and Content-Signal. Raises the same errors as `can_fetch`, and a
        TypeError if `headers` does not consist of pairs of str.
        """
        question = Question.of(agent, url, self._grammar)
        known = self._known(question.origin, [question.agent])
        if known is None:
            return None
        _, (rules,) = known
        return rules.agent_rules.usage_preferences(
            question.readings, self._grammar, headers
        )

    def _at_once(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """The result of two dictionary lookups; `None` if they are not enough.

        Each agent's rules are keyed by origin, and most URLs start with that key.
        """
        try:
            slash = url.index("/", 8)  # type: ignore[union-attr]  # EAFP: not a str
            rules = self._by_agent[agent][url[:slash]]  # type: ignore[index]  # a list
            target: str = url[slash:]  # type: ignore[index]
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        rules.is_used = True
        if is_plain(target):  # nearly all targets are plain, and most are allowed
            return rules.rules.allows_at_once(target) or rules.allows([target])
        return rules.allows(self._grammar.readings_of(target_of(target)))

    def _allows(self, question: Question) -> bool | None:
        known = self._known(question.origin, [question.agent])
        if known is None:
            return None
        _, (rules,) = known
        return rules.allows(question.readings)

    def _known(
        self, origin: Origin, agents: Iterable[Agent]
    ) -> tuple[Standing, list[StandingFor]] | None:
        """The state of `origin` when it was fetched, in general and for each agent.

        `None` if nothing is archived. The file is parsed at most once.
        """
        standing = self._standing(origin)
        if standing is None:
            return None
        with self._lock:
            return standing, self._live.rules_for(standing, agents)

    def _standing(self, origin: Origin) -> Standing | None:
        key = origin.key
        with self._lock:
            standing = self._live.by_origin.get(key)
            if standing is not None:
                standing.is_used = True
                return standing
            if key in self._not_archived:
                return None
        response = self._response(key)
        if response is None:
            with self._lock:
                if len(self._not_archived) >= self._max_origins:
                    self._not_archived.clear()
                self._not_archived.add(key)
            return None
        now = _date_of(response)
        outcome = self._outcome(origin, response)
        rule = partial(
            entry_after,
            None,
            origin=key,
            began_at=now,
            now=now,
            policy=self._policy,
            level=zlib.Z_NO_COMPRESSION,
        )
        entry, outcome = judge(outcome, rule)
        if outcome.is_our_fault:
            _warn(key, outcome)
        with self._lock:
            return self._live.admit(entry, now)

    def _outcome(self, origin: Origin, response: ArchivedResponse) -> Outcome:
        """The outcome of a fetch of `origin` whose first response is `response`."""
        hops = Hops(origin, policy=self._policy)
        guard = FetchGuard(self._policy)
        responses = _hop_by_hop(response)
        while True:
            try:
                guard.check_host(hops.origin.host)
            except AddressRefusedError as error:
                return Outcome(
                    failure=FailureKind.ADDRESS_REFUSED,
                    error=f"{type(error).__name__}: {error}",
                    redirects=hops.redirects,
                )
            following = next(responses, None)
            if following is None:
                is_kept = hops.url == hops.origin.robots_url
                other = self._response(hops.origin.key) if is_kept else None
                if other is None:
                    return Outcome(
                        failure=FailureKind.OTHER,
                        error=f"the archive has no record of {hops.url}",
                        redirects=hops.redirects,
                    )
                responses = _hop_by_hop(other)
                following = next(responses)
            outcome = hops.after(*following, is_archived=True)
            if outcome is not None:
                return outcome

    def _response(self, origin: str) -> ArchivedResponse | None:
        find = self._find
        given: object = find.get(origin) if isinstance(find, Mapping) else find(origin)
        if isinstance(given, bytes):
            return ArchivedResponse(_OK, body=given)
        if isinstance(given, ArchivedResponse):
            return None if given.status is None else given
        if given is None:
            return None
        raise TypeError(
            f"expected find({origin!r}) to return an ArchivedResponse, bytes or None,"
            f" got {type(given).__name__}"
        )


def _warn(origin: str, outcome: Outcome) -> None:
    """Warn of a bug, with its traceback, because pure code does not log."""
    from traceback import format_exception  # noqa: PLC0415 (a bug is rare)

    traceback = "".join(format_exception(outcome.cause))
    message = f"could not judge the response of {origin}: {traceback}"
    warnings.warn(message, RuntimeWarning, stacklevel=2)


def _check_keys(responses: Mapping[str, object]) -> None:
    """Raise a ValueError if the first key of `responses` is not an origin.

    No other key is read, because the mapping may be a database.
    """
    key = next(iter(responses), None)
    if key is not None and str(Origin.from_url(key)) != key:
        raise ValueError(
            "expected the keys of find to be origins such as 'https://example.com',"
            f" got {without_userinfo(key)!r}"
        )


def _hop_by_hop(response: ArchivedResponse) -> Iterator[tuple[int, HeadersLike, bytes]]:
    """The status, headers and body of each redirect in order, then of `response`."""
    for url, status in response.redirects:
        yield status, [("location", url)], b""
    yield cast("int", response.status), response.headers, response.body


def _redirect(pair: object) -> tuple[str, int]:
    match pair:
        case (str(url), int(status)):
            check_bound("status of a redirect", status, lowest=300, highest=399)
            return url, status
        case _:
            raise TypeError(
                f"expected redirects to be (URL, status) pairs, got {pair!r}"
            )


def _check_date(date: object) -> None:
    if isinstance(date, bool) or not isinstance(date, int | float):
        raise TypeError(f"expected fetched_at in epoch seconds, got {date!r}")
    if not 0 <= date < math.inf:
        raise ValueError(
            f"expected fetched_at to be finite and 0 or more, got {date!r}"
        )


def _date_of(capture: ArchivedResponse) -> float:
    return _NO_DATE if capture.fetched_at is None else capture.fetched_at


def _access(capture: ArchivedResponse, policy: Policy) -> AccessResult | None:
    """The access result of `capture` if there is a copy; `None` for a redirect."""
    status, body = capture.status, capture.body
    if status is None:
        return AccessResult.SUCCESSFUL
    if is_redirect(status):
        return None
    end = Outcome(status=status, body=body, is_wall=is_wall(status, body, policy))
    return access_result(end, policy, origin="", last_access=AccessResult.SUCCESSFUL)
