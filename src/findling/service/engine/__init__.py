"""The engine: the one facade that faces call."""
