"""Blocking versions of the checker and the gate, usable from any thread."""

from robotsgate.sync._checker import RobotsChecker
from robotsgate.sync._gate import PolitenessGate, Turn

__all__ = ["PolitenessGate", "RobotsChecker", "Turn"]
