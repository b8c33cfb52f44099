"""The node's side of power control: readings, their shares by tier, and caps, in the agent."""
