"""The vector leg: memory-mapped matrices, scanned in full or by their signs first."""
