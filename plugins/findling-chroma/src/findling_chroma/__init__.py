"""Vectors of findling in Chroma."""
