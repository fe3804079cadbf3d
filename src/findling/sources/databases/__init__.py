"""Tables of databases, whose rows are read as resources."""
