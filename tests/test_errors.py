from __future__ import annotations

import copy
import pickle
from dataclasses import replace

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
    RobotsError,
    Rule,
    RuleKind,
    StoreError,
    TurnNotInTimeError,
    UnsupportedError,
    Verdict,
    errors,
)

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
    TurnNotInTimeError("expected a turn within 0 s", ready_at=1_800_000_000.0),
]


def test_every_exported_error_is_a_robots_error_and_tested_here() -> None:
    exported = {name for name in robotsgate.__all__ if name.endswith("Error")}
    assert {type(error).__name__ for error in ERRORS} == exported
    assert all(isinstance(error, RobotsError) for error in ERRORS)


def test_bad_values_alone_are_value_errors() -> None:
    value_errors = {type(error) for error in ERRORS if isinstance(error, ValueError)}

    assert value_errors == {InvalidURLError, InvalidProductTokenError}


@pytest.mark.parametrize(
    ("kind", "name"), [(InvalidURLError, "url"), (InvalidProductTokenError, "agent")]
)
def test_error_keeps_what_came(kind: type[RobotsError], name: str) -> None:
    came = object()

    error = kind("expected something else", **{name: came})

    assert getattr(error, name) is came
    assert str(error) == "expected something else"


def test_disallowed_error_keeps_the_verdict_and_names_the_url() -> None:
    verdict = replace(VERDICT, url="http://h/p\x1b")

    error = DisallowedError(verdict)

    assert error.verdict is verdict
    assert str(error) == rf"http://h/p\x1b is {verdict}"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "copied",
    [
        pytest.param(lambda error: pickle.loads(pickle.dumps(error)), id="pickle"),  # noqa: S301 (our own bytes)
        pytest.param(copy.copy, id="copy"),
    ],
)
def test_error_survives_the_way_to_another_process(
    error: RobotsError, copied: object
) -> None:
    """A pool of processes hangs on exceptions that cannot be pickled."""
    assert callable(copied)

    twin = copied(error)

    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_tree_of_the_docstring_names_every_error() -> None:
    assert errors.__doc__ is not None

    names = [type(error).__name__ for error in ERRORS]
    missing = [name for name in names if name not in errors.__doc__]

    assert missing == []
