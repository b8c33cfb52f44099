"""The overcommit admission webhook: it lowers the CPU requests of pods at their creation."""
