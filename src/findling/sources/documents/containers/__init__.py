"""Containers of document formats: ZIP packages, XML trees, OLE files."""
