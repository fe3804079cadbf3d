"""Ranking: pure functions that return a score together with its reasons."""
