"""An agent that observes for long while pods and threads come and go, and whether it grows."""
