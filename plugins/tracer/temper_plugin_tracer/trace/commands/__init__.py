"""The commands of ``temper trace``, each in the module of its name."""
