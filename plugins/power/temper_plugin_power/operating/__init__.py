"""The decisions of an operator, pure: which nodes are capped, when, and what follows for them."""
