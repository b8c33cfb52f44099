"""Records a node, reads a recording, and simulates decisions on it."""
