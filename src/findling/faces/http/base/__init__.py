"""Problem documents (RFC 9457) and JSON encoding, for every route."""
