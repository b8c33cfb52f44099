"""Parts of the servers that Temper's plugins run as Deployments, imported module by module."""
