"""Views of a cluster's power from its objects: nodes, profiles, and the reasons. Pure."""
