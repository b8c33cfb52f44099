"""What both servers of this plugin stand on: addresses, connections, and bodies of requests."""
