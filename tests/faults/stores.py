"""A store that cannot be used; the server is in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate import Policy
from tests.faults.fault import RULES, Group
from tests.faults.rows import answering, rules_decide
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from tests.faults.stage import Stage

_SERVING = answering(Reply(body=RULES))
_IMPATIENT = Policy(store_timeout=0.2)


def _new_and_locked(stage: Stage) -> str:
    return f"sqlite:///{stage.locked_file(is_store=False)}"


def _known_and_locked(stage: Stage) -> str:
    return f"sqlite:///{stage.locked_file(is_store=True)}"


STORES = Group(
    name="stores",
    faults=(
        rules_decide(
            "serves rules while another process has locked the file of the store",
            _SERVING,
            store=_known_and_locked,
            policy=_IMPATIENT,
        ),
        rules_decide(
            "serves rules while another process has locked the file in which the store"
            " is created",
            _SERVING,
            store=_new_and_locked,
            policy=_IMPATIENT,
        ),
    ),
)
