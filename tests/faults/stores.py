"""Stores that cannot be used, with a server that works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate import Policy
from tests.faults.fault import RULES
from tests.faults.rows import answering, rules_apply
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from tests.faults.stage import Stage

_SERVING = answering(Reply(body=RULES))
_SHORT_STORE_TIMEOUT = Policy(store_timeout=0.2)


def _new_and_locked(stage: Stage) -> str:
    return f"sqlite:///{stage.locked_file(is_store=False)}"


def _locked(stage: Stage) -> str:
    return f"sqlite:///{stage.locked_file(is_store=True)}"


STORES = (
    rules_apply(
        "serves rules while another process has locked the store",
        _SERVING,
        store=_locked,
        policy=_SHORT_STORE_TIMEOUT,
    ),
    rules_apply(
        "serves rules while another process has locked the new store",
        _SERVING,
        store=_new_and_locked,
        policy=_SHORT_STORE_TIMEOUT,
    ),
)
