"""BPF without a library: light skeletons built beforehand, loaded over bpf(2)."""
