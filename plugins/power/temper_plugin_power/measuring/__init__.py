"""The measures of all pods from a Prometheus, by one query for each signal."""
