"""Reads every thread inside the kernel: the tiers ``bpf`` and ``bpf-iter``."""
