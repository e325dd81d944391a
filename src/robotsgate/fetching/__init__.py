"""Fetches one robots.txt; a failure is an outcome, not an exception.

Its modules may touch the network, but must not import `stores`, `checking` or what is
above `checking`.
"""
