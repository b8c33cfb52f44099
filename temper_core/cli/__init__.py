"""The command line: one module per sub-command, heavy imports inside them."""
