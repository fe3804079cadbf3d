"""Tools, their arguments, schemas and results."""
