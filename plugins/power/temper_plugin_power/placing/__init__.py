"""The answers of a scheduler extender, pure: which nodes take a pod, and their scores."""
