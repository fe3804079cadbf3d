"""Settings: declared once, layered, with their provenance."""
