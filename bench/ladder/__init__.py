"""A latency ladder: the same load under the stock scheduler and under plans of the agent."""
