"""Sources of content: discovery of files, reading them as text."""
