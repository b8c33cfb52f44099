"""What is on this node: its CPUs, its cgroups, its pods. Reads, never writes."""
