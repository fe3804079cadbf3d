"""Output on the terminal: rendered answers, JSON, progress, colours."""
