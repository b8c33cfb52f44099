"""Plugins that abuse one part of an instrument each."""
