"""Instruments: opens them, calls each in isolation, and gives each its context."""
