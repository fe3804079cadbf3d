"""The glossary: expansion, mining, decisions."""
