"""Where content comes from: discovery of files, reading them as text."""
