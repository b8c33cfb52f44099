"""Checks of the machine before an engine starts. Each check has its remedy."""
