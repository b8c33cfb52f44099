"""Who wakes whom, and who waits for a CPU behind whom: watched in short windows on demand."""
