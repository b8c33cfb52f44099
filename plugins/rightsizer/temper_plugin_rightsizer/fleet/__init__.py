"""The demand of a fleet's containers, from a Prometheus, Thanos or Mimir that keeps it already."""
