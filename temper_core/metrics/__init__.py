"""The agent's metrics: families, totals over time, and the text exposition for Prometheus."""
