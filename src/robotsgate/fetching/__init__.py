"""Fetches one robots.txt over httpx; every failure is an outcome, not an exception."""
