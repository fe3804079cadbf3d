"""Storage: the truth store and the legs derived from it."""
