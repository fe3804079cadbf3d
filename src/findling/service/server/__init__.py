"""The engine pool of a daemon, its state, tokens and watchers."""
