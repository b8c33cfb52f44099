"""The scheduler extender as a server: its caches, its questions and answers, its metrics."""
