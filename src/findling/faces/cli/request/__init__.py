"""From options and arguments to a search request."""
