"""The rules, pure: from the hints and signals of a workload to its power profile."""
