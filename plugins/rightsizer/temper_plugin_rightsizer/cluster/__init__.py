"""Demand of a cluster: the answers of its agents, merged by workload."""
