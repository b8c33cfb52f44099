"""The agent: decides on plans, drives the engine, observes the node and publishes its state."""
