"""The truth of one workspace in the tables of PostgreSQL."""
