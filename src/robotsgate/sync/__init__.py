"""The fronts for code that is not asynchronous, from any thread."""

from robotsgate.sync._checker import RobotsChecker

__all__ = ["RobotsChecker"]
