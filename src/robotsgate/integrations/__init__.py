"""Obeys robots.txt in other clients; all but httpx need the extra of their name."""
