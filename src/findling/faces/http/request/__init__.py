"""From an HTTP request to a search request: caller, body, fair queue."""
