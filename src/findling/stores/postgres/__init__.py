"""The second tier: a workspace in PostgreSQL."""
