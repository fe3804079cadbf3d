"""The server over stdio and HTTP, and the proxy to the daemon."""
