"""Models of providers over HTTP."""
