"""One module for each group of commands; each is imported only when it is called."""
