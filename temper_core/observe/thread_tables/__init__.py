"""Recording thread tables from live processes, and judging them against profiles."""
