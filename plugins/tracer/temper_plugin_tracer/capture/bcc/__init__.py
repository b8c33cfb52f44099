"""Records by a program that an installed bcc compiles, for kernels without type information."""
