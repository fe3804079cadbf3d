"""From ranked candidates to an answer: group, cut, highlight, explain."""
