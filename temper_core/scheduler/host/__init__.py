"""Reads the host: paths, the kernel's sched_ext state, the lock of the node."""
