"""What an engine's end means: its diagnosis, and how long to stay away."""
