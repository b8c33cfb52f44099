"""Workload profiles: reading, checking, completing, linting, and choosing one for a pod."""
