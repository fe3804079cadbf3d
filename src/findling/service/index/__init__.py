"""One open index: files, refresh, embeddings, views, recovery."""
