"""The local backend: SQLite, tantivy and vector files in one folder."""
