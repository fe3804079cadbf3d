"""Commands that find something: search, explain, fetch, similar, suggest, eval."""
