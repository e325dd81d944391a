"""Decides when the next request to a host may start."""
