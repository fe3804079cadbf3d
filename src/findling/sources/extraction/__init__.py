"""Reading documents that are not plain text: one module a format, each with `extract(source) -> Extracted`."""
