"""Has an installed Perfetto record the node, and takes its trace as it is."""
