"""TLS of a server: its context, and the change of its certificate while it serves."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def server_context() -> ssl.SSLContext:
    """Return the context of a TLS server that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def present(context: ssl.SSLContext, pem: bytes) -> None:
    """Let *context* serve this certificate from the next handshake on. Open connections are kept.

    *pem* is the chain, the server's own certificate first, and its key. Raises ssl.SSLError if they
    do not belong together, or the key is encrypted. Call it on the thread that makes handshakes.
    """
    with _as_file(pem) as path:
        # Without a password OpenSSL asks for that of an encrypted key, on the terminal.
        context.load_cert_chain(path, password="")


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    # Python reads keys from files only. A memfd needs no writable file system.
    number = os.memfd_create("temper-certificate", os.MFD_CLOEXEC)
    try:
        os.write(number, data)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)
