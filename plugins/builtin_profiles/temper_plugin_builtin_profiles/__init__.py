"""Workload profiles that ship with Temper."""
