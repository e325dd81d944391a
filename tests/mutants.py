"""Checks that tests fail if a rule is broken.

A mutant is a change of one line in `src` that breaks a rule. The tests named with it
must then fail: they are the ones next to the rule, so tests of the layers above can be
cut as long as all mutants are killed.

python -m tests.mutants
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[1]
_SOURCE = _ROOT / "src"
_TESTS_FAILED = 1  # pytest's exit code; another one means that no test decided

# The tests, the rule, and its mutants. A line to change occurs only once in `src`.
_MUTANTS = r"""
tests/robotstxt: a byte order mark is ignored, and so is a line cut at the limit
- return body[len(_mark(body)) :] if body.startswith(_MARKS) else body
+ return body
- return body[: end + 1]
+ return body[:max_bytes]

tests/robotstxt: only a rule ends a run of user-agent lines; groups are merged
- start > end and grammar.rule_line.search(lower_text, end, start)
+ start > end
- elif named[-1] is not section:
+ elif not named:

tests/robotstxt: a product token is a whole name; * is only a fallback
- return header[: end.start()] if end else header
+ return (header[: end.start()] if end else header).rstrip("0123456789")
- for token in (*tokens, "*"):
+ for token in ("*", *tokens):

tests/robotstxt: the longest pattern wins; allow wins a tie
- return max(filter(target.startswith, self.prefixes), key=len, default="")
+ return min(filter(target.startswith, self.prefixes), key=len, default="")
- return len(allow) >= len(disallow)
+ return len(allow) > len(disallow)

tests/robotstxt: * matches any characters; a final $ matches the end
- if anchor in target and matches(pattern, target):
+ if anchor in target:
- return pattern.removesuffix("$").split("*")
+ return pattern.split("*")

tests/robotstxt: escapes have one spelling; a lone % has two readings
- high + low: chr(octet) if chr(octet) in _UNRESERVED else f"%{octet:02X}"
+ high + low: f"%{octet:02X}"
- return spelt, *normalised_targets(LONE_PERCENT.sub("%25", octets))
+ return (spelt,)

tests/robotstxt: Dialect.GOOGLE is Google's parser
- _MAX_LINE_LENGTH = 16_663
+ _MAX_LINE_LENGTH = 16_664
- "disallaw": LineKind.DISALLOW,
+ "disalaw": LineKind.DISALLOW,

tests/urls: an origin is a scheme, a host and a port in one spelling
- host = host.lower().removesuffix(".")
+ host = host.lower()
- is_default = self.port == DEFAULT_PORTS[self.scheme]
+ is_default = self.port in DEFAULT_PORTS.values()

tests/urls: what is sent is what was checked
- paths |= dict.fromkeys(_resolutions(one.replace(_BACKSLASH, "/")))
+ paths |= dict.fromkeys(_resolutions(one))
tests/fetching: what is sent is what was checked
- return _as_asked(url) == _as_asked(fetch.hop)
+ return True

tests/caching: a 202 or 205 without any rules is a bot wall
- _NONCOMMITTAL = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.RESET_CONTENT})
+ _NONCOMMITTAL = frozenset({HTTPStatus.ACCEPTED})
- and not has_rules(body, max_bytes=policy.max_body_bytes)
+ and not body

tests/caching: a 2xx except 206 has a file; a 4xx means that there is none
- {HTTPStatus.PARTIAL_CONTENT, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
+ {HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
- if 400 <= status <= 499 or (
+ if 402 <= status <= 499 or (

tests/caching: a 429 is unreachable, but no evidence against the origin
- on_too_many_requests: AccessResult = AccessResult.UNREACHABLE
+ on_too_many_requests: AccessResult = AccessResult.UNAVAILABLE
- {HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, HTTPStatus.TOO_MANY_REQUESTS}
+ {HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}

tests/caching: a 5xx is a missing page if it says so and there is no copy
- return any(phrases) and all(
+ return all(
- and last_access is not AccessResult.SUCCESSFUL
+ and last_access is not AccessResult.REFUSED

tests/caching: five redirects are followed, but no 304
- max_redirects: int = 5
+ max_redirects: int = 4
- return 300 <= status <= 399 and status != HTTPStatus.NOT_MODIFIED
+ return 300 <= status <= 399

tests/caching: robots.txt itself is allowed, unless the address was refused
- Effect.REFUSE: AgentRules(group=None, rules=RuleSet(_EVERYTHING, implied=None)),
+ Effect.REFUSE: AgentRules(group=None, rules=RuleSet(_EVERYTHING)),
- closed = Effect.REFUSE if access is AccessResult.REFUSED else Effect.DISALLOW
+ closed = Effect.DISALLOW

tests/caching: gzip and deflate are decoded, but only one of them
- if len(codings) == 1 and codings[0] in _GZIP:
+ if codings[0] in _GZIP:
- if self._members and self._waiting[:2] != _GZIP_MAGIC:
+ if self._members:

tests/caching: headers set the freshness lifetime within bounds
- return min(max(asked, policy.min_lifetime), policy.max_lifetime)
+ return min(asked, policy.max_lifetime)
- return lifetime - _age(headers)
+ return lifetime

tests/caching: retries back off; Retry-After only lengthens the delay
- delay *= float(policy.retry_factor) ** (failures - 1)
+ delay *= float(policy.retry_factor) ** failures
- max(delay, asked
+ min(delay, asked

tests/caching: a copy is used from the end of the grace until that of the window
- yield outage.since + policy.outage_grace, closed, Reason.UNREACHABLE
+ yield outage.since, closed, Reason.UNREACHABLE
- return outage.since + policy.stale_window if began_in_time else -math.inf
+ return outage.since + policy.stale_window

tests/caching: after the limit, evidence must be of several days and up to date
- and outage.days >= min(policy.days_of_evidence, most_days)
+ and outage.days >= 1
- outage.last_evidence_at == outage.last_attempt_at
+ outage.last_evidence_at is not None

tests/caching: the later answer wins, unless it is far ahead of the clock
- known_is_later = _order(known.answer, now) > _order(stored.answer, now)
+ known_is_later = _order(known.answer, now) < _order(stored.answer, now)
- return self.answered_at > now + LARGEST_SKEW
+ return False

tests/caching: a damaged entry is unreadable; a later version's is not overwritten
- if checksum != zlib.crc32(memoryview(data)[_FRAME.size :], seed):
+ if not checksum:
tests/checking: a damaged entry is unreadable; a later version's is not overwritten
- if entry == stored or is_of_later_version:
+ if entry == stored:

tests/caching: no redirect from a public to a special address, as dialled
- return not self._was_public
+ return True
tests/fetching: no redirect from a public to a special address, as dialled
- permitted = self._fetch.guard.permit(host, await addresses)
+ permitted = await addresses

tests/fetching: a fetch has a deadline, and a body a size limit
- self._wait_ends_at = min(now + seconds, self._ends_at)
+ self._wait_ends_at = now + seconds
- self.is_over |= len(self._decoded) >= self._max_bytes
+ self.is_over |= len(self._decoded) > self._max_bytes

tests/test_flights.py: callers share a fetch, and fetches have a limit
- return self._flights.get(key) or self._begin(key, work, call_soon)
+ return self._begin(key, work, call_soon)
tests/checking: callers share a fetch, and fetches have a limit
- self._places = anyio.Semaphore(max_concurrent_fetches, fast_acquire=True)
+ self._places = anyio.Semaphore(10**9, fast_acquire=True)

tests/simulation: an origin is renewed when it is due, and not forgotten by chance
- return now < self.current_until(entry, now)
+ return False
- previous = None if is_forgotten else merge(looked_up, stored, now=now)
+ previous = None

tests/simulation: entries are stored, by origin and terms, until they are forgotten
- self._terms = terms_of(policy)
+ self._terms = ""
- if entry == stored or is_of_later_version:
+ if made:
- await self._entries.delete(key)
+ pass

tests/simulation: callers share a fetch, and an override needs none
- return self._flights.get(key) or self._begin(key, work, call_soon)
+ return self._begin(key, work, call_soon)
- if standing is None and origin in self.overrides:
+ if False:

tests/politeness/test_host_record.py: the longest delay, from the end of a request
- return max(delays, default=None)
+ return min(delays, default=None)
- last_at = max(record.ended_at, record.fetch_began_at, *record.turns)
+ last_at = max(record.fetch_began_at, NEVER, *record.turns)

tests/politeness/test_host_record.py: turns are limited in number and in time
- max_at_once=1 if has_crawl_delay
+ max_at_once=2 if has_crawl_delay
- ended_at=max(record.ended_at, max(overdue) + seconds),
+ ended_at=max(record.ended_at, max(overdue)),

tests/politeness/test_host_record.py: an incident blocks, until a good response
- back_off = max(SLOW_DOWN * record.back_off, FIRST_BACK_OFF)
+ back_off = FIRST_BACK_OFF
- if began_at <= record.incident_at:
+ if began_at <= NEVER:

tests/politeness/test_host_record.py: processes get their turns in order of arrival
- if seconds <= 0 and not ahead:
+ if seconds <= 0:
- waiting = [place for place in record.queue if place[1] > now]
+ waiting = [*record.queue]

tests/politeness: the gate asks again after a wait; a schedule skips late URLs
- return not is_replaced and self._clock.now() < rules.usable_until
+ return True
- last = seconds + (len(urls) - 1) * delay
+ last = seconds
"""


class Mutant(NamedTuple):
    """One change of a line, and the tests that must then fail."""

    tests: str
    rule: str
    old: str
    new: str


def _mutants() -> Iterator[Mutant]:
    tests = rule = old = ""
    for line in filter(None, _MUTANTS.splitlines()):
        if line.startswith("- "):
            old = line[2:]
        elif line.startswith("+ "):
            yield Mutant(tests, rule, old, line[2:])
        else:
            tests, _, rule = line.partition(": ")


MUTANTS = tuple(_mutants())


def main() -> int:
    """Run the mutants, and return the exit code: 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="run only mutants with one of these")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once")
    options = parser.parse_args()
    chosen = [
        one
        for one in MUTANTS
        if not options.words or any(word in "\n".join(one) for word in options.words)
    ]
    if _run(sorted({one.tests for one in chosen}), _SOURCE):
        sys.exit("the tests fail without any mutant")
    survivors = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for one, is_killed in zip(chosen, pool.map(_is_killed, chosen), strict=True):
            survivors += not is_killed
            verdict = "killed" if is_killed else "SURVIVED"
            sys.stdout.write(f"{verdict:8}  {one.tests}: {one.rule}: {one.new}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} of {len(chosen)} killed\n")
    return min(survivors, 1)


def _is_killed(mutant: Mutant) -> bool:
    with TemporaryDirectory() as folder:
        source = Path(shutil.copytree(_SOURCE, f"{folder}/src"))
        for path in source.rglob("*.py"):
            text = path.read_text()
            if mutant.old in text:
                path.write_text(text.replace(mutant.old, mutant.new))
        return _run([mutant.tests], source) == _TESTS_FAILED


def _run(tests: list[str], source: Path) -> int:
    """Pytest's exit code for `tests` of `source`; a timeout counts as a failed test."""
    command = "-m pytest -q -x -p no:cacheprovider -n 0"
    try:
        return subprocess.run(  # noqa: S603 (pytest itself)
            [sys.executable, *command.split(), *tests],
            cwd=_ROOT,
            env=os.environ | {"PYTHONPATH": str(source)},
            stdout=subprocess.DEVNULL,
            timeout=300,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return _TESTS_FAILED


if __name__ == "__main__":
    sys.exit(main())
