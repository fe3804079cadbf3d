"""The keyword leg in PostgreSQL: postings in tables, the ranking of the local tier."""
