"""Exact and complete answers: the lines that match a pattern, the files that match a glob."""
