"""TLS of the webhook: what it presents, and how a certificate is changed while it serves."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from temper_plugin_density.overcommit import certificates as x509
from temper_plugin_density.overcommit.material import Material


def server_context() -> ssl.SSLContext:
    """Return the context of a TLS server that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def present(context: ssl.SSLContext, material: Material) -> None:
    """Let *context* serve this certificate from the next handshake on. Open connections stay.

    To be called where handshakes are made, in between two of them.
    """
    pem = x509.written([material.certificate]) + x509.written_key(material.key)
    with _as_file(pem) as path:
        context.load_cert_chain(path)


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    # Python takes a key from files only. This one is in memory, and the root file system may be
    # read-only.
    number = os.memfd_create("temper-certificate", os.MFD_CLOEXEC)
    try:
        os.write(number, data)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)
