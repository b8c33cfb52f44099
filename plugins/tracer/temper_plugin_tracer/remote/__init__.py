"""``kubectl temper trace``: a capture of a pod by the agent of its node, through the API server."""
