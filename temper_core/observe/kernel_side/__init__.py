"""Looking at every thread from inside the kernel: the tiers ``bpf`` and ``bpf-iter``."""
