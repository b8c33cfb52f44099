"""``temper train``, ``temper profiles record`` and ``temper profiles test``."""
