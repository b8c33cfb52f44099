"""Instruments: their life cycle, isolated calls, and contexts."""
