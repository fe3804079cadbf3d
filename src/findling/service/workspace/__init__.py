"""Workspaces: where they lie, what identifies them, quotas."""
