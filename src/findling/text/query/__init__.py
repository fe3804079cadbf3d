"""The query language: lexer, parser, tree, intent, routing."""
