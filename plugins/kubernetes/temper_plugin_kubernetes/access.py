"""Where the API server is, and in whose name it is asked: a service account or a kubeconfig."""

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from temper_core import InputError, MachineError
from temper_plugin_kubernetes.failures import AwayError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HTTPS_PORT, HTTP_PORT = 443, 80
LARGEST_TOKEN_BYTES = 65_536


@frozen
class Credentials:
    """Who asks, as files that are read again for every connection: they are replaced in place.

    ``*_data`` are the same as text, where a kubeconfig has them in itself.
    """

    token_file: str = ""
    token: str = field(default="", repr=False)
    ca_file: str = ""
    ca_data: str = ""
    certificate_file: str = ""
    key_file: str = ""
    certificate_data: bytes = field(default=b"", repr=False)
    server_name: str = ""
    is_insecure: bool = False


@frozen
class Access:
    """One API server as one user; ``prefix`` goes before every path."""

    host: str
    port: int
    is_tls: bool = True
    prefix: str = ""
    credentials: Credentials = Credentials()

    @property
    def name(self) -> str:
        """What to call the server in a message."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def headers(self) -> dict[str, str]:
        """Return the headers that say who asks; raise AwayError where the token is not there."""
        path = self.credentials.token_file
        token = self.credentials.token.strip()
        if path:
            try:
                with Path(path).open("rb") as file:
                    token = file.read(LARGEST_TOKEN_BYTES).strip().decode("ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise AwayError(f"{path}: the token cannot be read: {error}") from error
        if not all(" " <= each <= "~" for each in token):  # it must not be told in an error
            raise AwayError(f"{path or 'the token'}: it has characters that no token has")
        return {"Authorization": f"Bearer {token}"} if token or path else {}

    def tls(self) -> ssl.SSLContext:
        """Return how to trust and to be trusted; raise AwayError where files are missing."""
        given = self.credentials
        try:
            context = ssl.create_default_context(
                cafile=given.ca_file or None, cadata=given.ca_data or None
            )
            # Python 3.13 demands extensions that the authorities of many clusters do not have.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if given.is_insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            _load_own(context, given)
        except (OSError, ssl.SSLError) as error:
            where = given.ca_file or "its certificates"
            raise AwayError(f"{where}: TLS cannot be set up: {error}") from error
        return context


def in_cluster(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access | None:
    """Return the way that Kubernetes gives every pod; None outside of a cluster."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT_HTTPS") or environment.get(
        "KUBERNETES_SERVICE_PORT", ""
    )
    if not host:
        return None
    credentials = Credentials(str(directory / "token"), ca_file=str(directory / "ca.crt"))
    return Access(host, int(port) if port.isdigit() else HTTPS_PORT, credentials=credentials)


def from_kubeconfig(path: str) -> Access:
    """Return the way that a kubeconfig's current context names; raise InputError where it is odd.

    Users who are told by another program (``exec``) are not supported: an agent has none.
    """
    import yaml  # noqa: PLC0415 - not needed inside of a cluster

    try:
        table = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read as a kubeconfig: {error}") from error
    try:
        context = _named(table["contexts"], table["current-context"])["context"]
        cluster = _named(table["clusters"], context["cluster"])["cluster"]
        user = _named(table["users"], context["user"]).get("user") or {}
        return access_of(cluster, user, Path(path).parent)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise InputError(f"{path}: no kubeconfig that can be used: {error!r}") from error


def _named(entries: Any, name: str) -> Any:  # noqa: ANN401 - whatever the file says
    return next(entry for entry in (*entries, {"name": name}) if entry["name"] == name)


def access_of(cluster: Mapping[str, Any], user: Mapping[str, Any], beside: Path) -> Access:
    """Return the way that two entries of a kubeconfig name; paths are relative to *beside*.

    Raises KeyError, TypeError or ValueError where they are odd.
    """
    url = urlsplit(cluster["server"])
    is_tls = url.scheme == "https"
    if not url.hostname:
        raise ValueError(f"the server {cluster['server']!r} is no URL")
    if "exec" in user or "auth-provider" in user:
        raise ValueError("the user comes from another program, which is not supported")
    ca = _text(cluster, "certificate-authority-data")
    credentials = Credentials(
        token_file=_file(user, "tokenFile", beside),
        token=str(user.get("token") or ""),
        ca_file=_file(cluster, "certificate-authority", beside),
        ca_data=ca.decode("ascii"),
        certificate_file=_file(user, "client-certificate", beside),
        key_file=_file(user, "client-key", beside),
        certificate_data=_text(user, "client-certificate-data") + _text(user, "client-key-data"),
        server_name=str(cluster.get("tls-server-name") or ""),
        is_insecure=cluster.get("insecure-skip-tls-verify") is True,
    )
    port = url.port or (HTTPS_PORT if is_tls else HTTP_PORT)
    return Access(url.hostname, port, is_tls, url.path.rstrip("/"), credentials)


def _file(table: Mapping[str, Any], key: str, beside: Path) -> str:
    return str(beside / table[key]) if table.get(key) else ""


def _text(table: Mapping[str, Any], key: str) -> bytes:
    return base64.b64decode(table.get(key, ""), validate=True)


def _load_own(context: ssl.SSLContext, given: Credentials) -> None:
    """Show a client's certificate, where the kubeconfig has one: OpenSSL reads it from files."""
    if given.certificate_file:
        context.load_cert_chain(given.certificate_file, given.key_file or None)
    if given.certificate_data:
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, given.certificate_data)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


def find_access(kubeconfig: str, environment: Mapping[str, str]) -> Access:
    """Return the way to the API server; raise MachineError where none is known."""
    if kubeconfig:
        return from_kubeconfig(kubeconfig)
    found = in_cluster(environment)
    if found is None:
        raise MachineError(
            "no API server is known: KUBERNETES_SERVICE_HOST is not set, as it is in every pod, "
            "and [plugins.kubernetes] kubeconfig names no file"
        )
    return found
