"""Plans: settings of a decision, inherited, checked and compiled."""
