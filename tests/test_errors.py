from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import robotsgate
from robotsgate import (
    AccessResult,
    DisallowedError,
    FailureKind,
    FetchFailedError,
    InvalidProductTokenError,
    InvalidURLError,
    Reason,
    RetriesExhaustedError,
    RobotsError,
    Rule,
    StoreError,
    TurnDeadlockError,
    TurnNotInTimeError,
    UnsupportedError,
    Verdict,
)
from robotsgate.robotstxt import RuleKind

if TYPE_CHECKING:
    from collections.abc import Callable

VERDICT = Verdict(
    allowed=False,
    url="https://example.com/private",
    agent="ExampleBot",
    reason=Reason.DISALLOWED_BY_RULE,
    rule=Rule(kind=RuleKind.DISALLOW, pattern="/private", line=2),
    group="*",
    access=AccessResult.SUCCESSFUL,
    is_stale=False,
    origin="https://example.com",
    status=200,
    redirects=(("https://www.example.com/robots.txt", 301),),
    error=None,
    fetched_at=1_800_000_000.0,
    fresh_until=1_800_086_400.0,
)

ERRORS: list[RobotsError] = [
    RobotsError("something went wrong"),
    InvalidURLError("expected a host, got 'https://'", url="https://"),
    InvalidProductTokenError("expected a product token, got ''", agent=""),
    UnsupportedError("not supported yet"),
    StoreError("expected a store, got 7"),
    FetchFailedError("the connection broke", kind=FailureKind.TRANSFER),
    DisallowedError(VERDICT),
    TurnDeadlockError("expected the turn to end"),
    TurnNotInTimeError("expected a turn within 0 s", ready_at=1_800_000_000.0),
    RetriesExhaustedError("https://e.com/ failed 2 times", cause="429"),
]


def test_every_exported_error_is_a_robots_error_and_tested_here() -> None:
    exported = {name for name in robotsgate.__all__ if name.endswith("Error")}
    assert {type(error).__name__ for error in ERRORS} == exported
    assert all(isinstance(error, RobotsError) for error in ERRORS)


def test_only_errors_about_invalid_values_are_value_errors() -> None:
    value_errors = {type(error) for error in ERRORS if isinstance(error, ValueError)}

    assert value_errors == {InvalidURLError, InvalidProductTokenError}


@pytest.mark.parametrize(
    ("kind", "name"), [(InvalidURLError, "url"), (InvalidProductTokenError, "agent")]
)
def test_error_keeps_the_invalid_value(kind: type[RobotsError], name: str) -> None:
    value = object()

    error = kind("expected something else", **{name: value})

    assert getattr(error, name) is value
    assert str(error) == "expected something else"


def test_disallowed_error_keeps_the_verdict_and_names_the_url() -> None:
    verdict = replace(VERDICT, url="http://h/p\x1b")

    error = DisallowedError(verdict)

    assert error.verdict is verdict
    assert str(error) == rf"http://h/p\x1b is {verdict}"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "make_copy",
    [lambda error: pickle.loads(pickle.dumps(error)), copy.copy],  # noqa: S301 (our own bytes)
)
def test_error_can_be_pickled_and_copied(
    error: RobotsError, make_copy: Callable[[RobotsError], RobotsError]
) -> None:
    """A process pool hangs on exceptions that cannot be pickled."""
    duplicate = make_copy(error)

    assert type(duplicate) is type(error)
    assert str(duplicate) == str(error)
    assert vars(duplicate) == vars(error)
