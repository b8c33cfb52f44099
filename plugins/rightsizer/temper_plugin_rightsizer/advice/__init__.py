"""From measured demand to requests, limits, and a verdict on exclusive cores."""
