"""The graph leg: which passages name which things, in one file that is mapped into memory."""
