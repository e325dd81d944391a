"""Other people's clients; each module but httpx needs the extra of its name."""
