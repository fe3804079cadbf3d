"""The compiled core: C for the hot loops, built when there is a compiler."""
