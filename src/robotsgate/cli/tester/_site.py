"""What the tester page shows about a site, whose file has to be fetched."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from robotsgate import AccessResult, Origin, RobotsError, RobotsTxt
from robotsgate.cli.tester._answers import Query, answer_of, has_scheme, shown_file

if TYPE_CHECKING:
    from robotsgate import Verdict
    from robotsgate.sync import RobotsChecker


def about_site(query: Query, checker: RobotsChecker) -> dict[str, Any]:
    """The file at `query.url` and the result of each check.

    Raises:
        RobotsError: `query.url` has no origin that `checker` can fetch.
    """
    origin, verdict = _fetch(query.url, checker)
    robots = checker.robots_txt(f"{origin}/") or RobotsTxt.parse("")
    told = verdict.as_dict()
    names = ("access", "status", "redirects", "error", "is_stale")
    dates = ("fetched_at", "fresh_until")
    source = {name: told[name] for name in (*names, *dates)}
    answers = [
        _answer_at(origin, agent, path, checker)
        for path, agent in product(query.paths, query.agents)
    ]
    return shown_file(robots) | {
        "answers": answers,
        "source": {"url": origin.robots_url, **source},
    }


def _fetch(url: str, checker: RobotsChecker) -> tuple[Origin, Verdict]:
    """Fetch from a site, trying HTTPS before HTTP if `url` has no scheme."""
    if has_scheme(url):
        origin = Origin.from_url(url)
        return origin, checker.check("*", f"{origin}/")
    https, http = (Origin.from_url(f"{s}://{url}") for s in ("https", "http"))
    verdict = checker.check("*", f"{https}/")
    if verdict.access is not AccessResult.UNREACHABLE or verdict.status is not None:
        return https, verdict
    over_http = checker.check("*", f"{http}/")
    if over_http.access is AccessResult.UNREACHABLE:
        return https, verdict
    return http, over_http


def _answer_at(
    origin: Origin, agent: str, path: str, checker: RobotsChecker
) -> dict[str, Any]:
    url = f"{origin}{path}" if path.startswith("/") else path
    try:
        if Origin.from_url(url) != origin:
            error = f"expected a URL of {origin}"
            return answer_of(agent, path, (None, None, error))
        verdict = checker.check(agent, url)
    except RobotsError as error:
        return answer_of(agent, path, (None, None, str(error)))
    line = None if verdict.rule is None else verdict.rule.line
    _, _, reason = str(verdict).partition(" ")
    return answer_of(agent, path, (verdict.allowed, line, reason))
