"""The engine, scx_layered: the capabilities of each version, and checks of a configuration."""
