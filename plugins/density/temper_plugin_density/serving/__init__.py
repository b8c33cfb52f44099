"""What both servers of this plugin stand on, besides the core's: bodies of requests."""
