"""Undo what Temper left on a host: its files, its pins, and engines without an agent."""
