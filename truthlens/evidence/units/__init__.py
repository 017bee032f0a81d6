"""The units of a prompt: labels, headings, elements, fenced blocks, rules and paragraphs."""
