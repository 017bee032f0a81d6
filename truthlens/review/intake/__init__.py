"""The way into the queue: which answers, handed over without making them wait, written in the background."""
