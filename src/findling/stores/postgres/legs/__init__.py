"""Legs that lie in PostgreSQL, so that a host that searches needs no index of its own."""
