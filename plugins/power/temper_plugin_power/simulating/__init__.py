"""A simulated day of jobs on capped nodes, with and without power profiles. Pure."""
