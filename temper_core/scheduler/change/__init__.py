"""A changed plan on its way into force: policy, warm swap, start."""
