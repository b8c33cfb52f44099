"""Requests for the stock scheduler: the host's file, the remembered requests, the API body."""
