"""An HTTP server with bounded connections, independent of the agent."""
