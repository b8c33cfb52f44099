"""Perfetto's trace format: what is needed of it to write and to read traces of the scheduler."""
