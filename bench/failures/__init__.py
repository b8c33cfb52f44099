"""Failures of agent and engine under load: how long requests take meanwhile, and for how long."""
