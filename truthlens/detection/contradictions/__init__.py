"""Find claims that say in nearly the same words the contrary of what the evidence says: negation, quantifiers, comparisons, roles."""
