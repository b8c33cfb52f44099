"""What the objects of a cluster say of its power: nodes, profiles, and why. Pure."""
