"""The fronts for code that is not asynchronous, from any thread."""

from robotsgate.sync._checker import RobotsChecker
from robotsgate.sync._gate import PolitenessGate, Turn

__all__ = ["PolitenessGate", "RobotsChecker", "Turn"]
