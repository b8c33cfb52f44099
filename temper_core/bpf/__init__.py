"""BPF without a library: prebuilt light skeletons, loaded by bpf(2)."""
