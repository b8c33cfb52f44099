"""The commands of ``temper trace flight-recorder``, each imported on use."""
