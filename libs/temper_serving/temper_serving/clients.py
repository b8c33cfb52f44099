"""Addresses of clients."""

from starlette.requests import Request


def address_of(request: Request) -> str:
    """Return the address of the client, empty if it is not known."""
    return request.client.host if request.client else ""
