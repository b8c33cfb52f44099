"""The overcommit admission webhook: CPU requests of pods are lowered as they are made."""
