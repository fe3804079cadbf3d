"""The work itself: indexing and searching."""
