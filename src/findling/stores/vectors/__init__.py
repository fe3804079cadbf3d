"""The vector leg: memory-mapped matrices and an HNSW graph."""
