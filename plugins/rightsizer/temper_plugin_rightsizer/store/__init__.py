"""The history of demand on the node: one SQLite file in the instrument's state directory."""
