"""Other people's clients; each module needs the extra of its name."""
