"""Search over what you already have; every result says why it is there."""
