"""Files: discovery, ignore rules, types, text, watching."""
