"""Events of this node, kept in memory and in a file within bounds."""
