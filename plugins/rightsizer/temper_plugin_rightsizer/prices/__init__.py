"""Prices of machines, and what a core and a GiB of each cost."""
