"""Reference stores in plain dictionaries: the definition that real stores are compared with."""
