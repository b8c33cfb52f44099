"""Steering: place every thread of the node in its layer by hints, without an engine change."""
