"""Analysis: text into terms, stems, scripts, spellings."""
