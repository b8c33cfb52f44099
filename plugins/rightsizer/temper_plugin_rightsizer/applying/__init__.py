"""Applies a report to the objects of a cluster, and undoes it."""
