"""Statements in plain words: their words, facts and periods, by rules and without a model."""
