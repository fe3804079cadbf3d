"""Measures on collections with judgements."""
