"""Decide: pods, profiles, machine and settings in, a layer plan out. Pure, no I/O."""
