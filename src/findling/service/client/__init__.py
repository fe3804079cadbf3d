"""Searching through the daemon: how it is found, asked, and read."""
