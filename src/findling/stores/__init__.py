"""Where content is kept: the truth store and the legs derived from it."""
