"""The review desk: pages for people, the review API, and what is learned from reviews."""
