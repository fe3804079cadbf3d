"""Index runs: survey, extract, chunk, embed, apply to every leg."""
