"""Pods to workloads: their measures as signals, and the objects that hold their profiles."""
