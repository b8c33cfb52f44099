"""The scheduler extender: scores nodes by the annotations of their agents."""
