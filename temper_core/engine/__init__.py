"""The engine, scx_layered: what each version can do, and what it would make of a configuration."""
