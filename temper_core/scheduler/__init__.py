"""The engine's life: preflight, attach and prove, stop, safe mode."""
