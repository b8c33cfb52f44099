"""Steering: put every thread of the node into its layer by hints, without touching the engine."""
