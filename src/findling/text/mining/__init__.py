"""Mining: synonyms, acronyms and compounds that a text explains."""
