"""A walk through the agent's life on a real sched_ext kernel. ``run`` boots one for it."""
