"""Fetches one robots.txt; a failure is an outcome, not an exception."""
