"""The keyword leg: a tantivy index."""
