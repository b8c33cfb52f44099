"""The agent: decide, drive the engine, observe, publish, until told to stop."""
