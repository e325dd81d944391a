from __future__ import annotations

import pytest

from robotsgate import Dialect, InvalidProductTokenError, InvalidURLError
from robotsgate.caching._question import Agent, Question
from robotsgate.robotstxt._dialect import grammar_of
from tests.checking.builders import AGENT, PUBLIC
from tests.tables import cases

GRAMMAR = grammar_of(Dialect.RFC9309)


def test_question_consists_of_agent_origin_and_readings() -> None:
    question = Question.of(AGENT, "HTTPS://user@Example.com./a/../b%7e?c#d", GRAMMAR)

    assert question.agent is Agent.of(AGENT)
    assert str(question.origin) == "https://example.com"
    assert question.readings == ("/a/../b~?c", "/b~?c")


@cases("agent error url", {
    "no token": ("", InvalidProductTokenError, PUBLIC),
    "no origin": (AGENT, InvalidURLError, "/private"),
    "neither": ("", InvalidProductTokenError, "/private"),
})  # fmt: skip
def test_question_without_a_token_or_an_origin_is_refused(
    agent: str, error: type[Exception], url: str
) -> None:
    with pytest.raises(error):
        Question.of(agent, url, GRAMMAR)


def test_list_and_tuple_of_names_give_the_same_agent() -> None:
    assert Agent.of(["a", "b"]) is Agent.of(("a", "b"))
    assert Agent.of(["a", "b"]).names == (("a", "b"),)
    assert [str(token) for token in Agent.of(["a/1", "b"]).tokens] == ["a", "b"]


def test_set_is_refused_even_if_the_same_tuple_is_cached() -> None:
    Agent.of(("ExampleBot",))

    with pytest.raises(InvalidProductTokenError):
        Agent.of({"ExampleBot"})  # type: ignore[arg-type]  # the caller's mistake
