"""The truth store: one SQLite file."""
