"""What really happens: threads, pressure and layers over one window. Reads, never writes."""
