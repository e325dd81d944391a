"""The version of robotsgate: the one place where it is written down."""

__all__ = ["__version__"]

__version__ = "0.1.0"
