"""The part in the agent: measures the node's containers, and answers for them."""
