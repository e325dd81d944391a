"""Measurements; each is run by hand and prints what it finds."""
