"""The inventory of this node: its CPUs, cgroups and pods. Apart from size notes, read only."""
