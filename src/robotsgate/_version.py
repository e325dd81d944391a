"""The version of robotsgate, defined only here."""

__version__ = "0.1.0"
