"""Replays recorded demand: what would have happened, had the advice been followed."""
