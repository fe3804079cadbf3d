"""Guards: tokens, origins, limits, slow connections."""
