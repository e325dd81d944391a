"""Answers questions: the checker, what it holds in memory, and what it fetches."""
