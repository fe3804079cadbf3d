"""Chunking: text into passages along its structure."""
