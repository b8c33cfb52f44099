"""Events: what happened on this node, kept in memory and in a file, within bounds."""
