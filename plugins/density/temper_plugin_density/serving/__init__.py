"""Code that both servers of this plugin share: bodies of requests."""
