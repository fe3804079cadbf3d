"""Explain, similar, suggest, and search across workspaces."""
