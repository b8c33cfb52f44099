"""Bounded captures of the scheduler's events: recording, bounds, and the captures that are kept.

The agent imports the modules without numpy. The others are imported by the helper process only.
"""
