"""Data files: JSON, CSV, SQLite, notebooks, subtitles, archives."""
