"""The warm process: a shell's searches begin in a fork of it, with everything loaded."""
