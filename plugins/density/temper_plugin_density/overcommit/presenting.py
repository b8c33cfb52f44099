"""The change of the webhook's certificate while it serves."""

import ssl

from temper_plugin_density.overcommit import certificates as x509
from temper_plugin_density.overcommit.material import Material
from temper_serving import tls


def present(context: ssl.SSLContext, material: Material) -> None:
    """Let *context* serve this certificate from the next handshake on. Open connections are kept.

    Call it on the thread that makes handshakes.
    """
    tls.present(context, x509.written(material.chain) + x509.written_key(material.key))
