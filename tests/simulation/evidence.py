"""A second judge, who knows only what the origins really did.

No beliefs, no store, no schedule: just the promise of safety. It holds whatever a
checker has forgotten, as long as the clock was not set back and no store brings
older knowledge back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate import AccessResult, AfterStaleWindow

from .answers import RULEBOOKS

if TYPE_CHECKING:
    from robotsgate import Policy

__all__ = ["Evidence"]


@dataclass
class Evidence:
    """What one origin did.

    Attributes:
        access: what its last answer came to; `None` before the first.
        rulebook: the name of the rules in that answer, if it had some.
        failing_since: when it first failed after that answer.
        not_asked_since: when it first could not be asked after that, because the
            caller's own pool was exhausted.
        is_spoilt: whether there is older knowledge that may come back.
    """

    access: AccessResult | None = None
    rulebook: str | None = None
    failing_since: float | None = None
    not_asked_since: float | None = None
    is_spoilt: bool = False

    def heard(self, access: AccessResult, rulebook: str | None, now: float) -> None:
        """The origin answered, or did not."""
        if access is AccessResult.UNREACHABLE:
            if self.failing_since is None:
                self.failing_since = now
            return
        self.access, self.rulebook = access, rulebook
        self.failing_since = self.not_asked_since = None

    def could_not_ask(self, now: float) -> None:
        """The caller's own pool was exhausted; that is not the origin's failure."""
        if self.not_asked_since is None:
            self.not_asked_since = now

    def may_allow(self, path: str, now: float, policy: Policy) -> bool:
        """Whether a "yes" at `now` can be right."""
        if self.is_spoilt:
            return True
        rules_allow = self.rulebook is not None and RULEBOOKS[self.rulebook].says[path]
        if self.failing_since is None:
            return self.access is AccessResult.UNAVAILABLE or bool(
                rules_allow and rules_allow[0]
            )
        if rules_allow and rules_allow[0]:
            return True  # by the last good copy; for how long, the beliefs say
        return (
            now >= self.failing_since + policy.stale_window
            and policy.after_stale_window is not AfterStaleWindow.DISALLOW
        )

    def may_be_stale(self, now: float, policy: Policy) -> bool:
        """Whether a copy may be used at `now` that is no longer fresh."""
        if self.is_spoilt:
            return True
        since = self.failing_since or self.not_asked_since
        if since is None or self.rulebook is None:
            return False
        is_kept = policy.after_stale_window is AfterStaleWindow.LAST_COPY
        return is_kept or now < since + policy.stale_window
