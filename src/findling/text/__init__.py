"""Turning text into terms, chunks and snippets: pure functions."""
