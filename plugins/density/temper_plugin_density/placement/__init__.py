"""The scheduler extender: nodes are scored by what their agents tell of them."""
