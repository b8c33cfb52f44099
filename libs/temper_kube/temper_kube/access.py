"""The address of an API server, and the credentials of its client."""

import base64
import os
import ssl
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from attrs import field, frozen

from temper_kube.credential_programs import CredentialProgram, Issued, read_program
from temper_kube.failures import UnreachableError
from temper_kube.impersonation import Headers, impersonation_of
from temper_kube.small_files import small_file

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE = "default"
NO_PASSWORD = ""
"""Without one OpenSSL asks for that of an encrypted key, on the terminal."""
HTTPS_PORT, HTTP_PORT, LARGEST_PORT = 443, 80, 65_535
SCHEMES = ("https", "http")
LARGEST_TOKEN_BYTES = 65_536


def _without_waiting(path: str, flags: int) -> int:
    """Open a file. A pipe without a writer is empty, where open(2) would wait for one."""
    return os.open(path, flags | os.O_NONBLOCK)


@frozen
class Credentials:
    """The client's identity and the authorities that it trusts.

    Files are read for every connection, because they are replaced in place. ``*_data`` hold the
    same contents from inside a kubeconfig, which ``Access.current`` reads again. A ``program``
    issues a token or a certificate. ``impersonation`` are the headers of the user that the client
    acts as, if it is another.
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
    program: CredentialProgram | None = field(default=None, repr=False)
    impersonation: Headers = ()

    def issued(self) -> Issued:
        """Return the token and the certificate. Raise MachineError if the program fails."""
        if self.program is not None:
            return self.program.credentials()
        return Issued(self.token, self.certificate_data)


@frozen
class Access:
    """One API server and one user. ``prefix`` is put before every path.

    ``namespace`` is the default namespace. ``renewed`` returns what the kubeconfig says now.
    An access that is made of another one and has to stay as it is needs ``renewed=None``.
    """

    host: str
    port: int
    is_tls: bool = True
    prefix: str = ""
    credentials: Credentials = Credentials()
    namespace: str = DEFAULT_NAMESPACE
    renewed: "Callable[[], Access] | None" = field(default=None, eq=False, repr=False)

    def current(self) -> "Access":
        """Return the access for a new connection: a kubeconfig may have been replaced."""
        return self if self.renewed is None else self.renewed()

    @property
    def name(self) -> str:
        """The server's name in messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def headers(self, issued: Issued | None = None) -> dict[str, str]:
        """Return the headers that identify the user. Raise UnreachableError for a bad token."""
        path = self.credentials.token_file
        token = (issued or self.credentials.issued()).token.strip()
        if path and self.credentials.program is None:
            try:
                with open(path, "rb", opener=_without_waiting) as file:
                    token = file.read(LARGEST_TOKEN_BYTES).strip().decode("ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise UnreachableError(f"{path}: the token cannot be read: {error}") from error
        if not all(" " <= character <= "~" for character in token):  # an error must not show it
            raise UnreachableError(f"{path or 'the token'}: the token has invalid characters")
        return {"Authorization": f"Bearer {token}"} if token or path else {}

    def tls(self, issued: Issued | None = None) -> ssl.SSLContext:
        """Return the TLS context. Raise UnreachableError if a file is missing or malformed."""
        credentials = self.credentials
        try:
            context = ssl.create_default_context(
                cafile=small_file(credentials.ca_file) if credentials.ca_file else None,
                cadata=credentials.ca_data or None,
            )
            # Python 3.13 requires extensions that the authorities of many clusters lack.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if credentials.is_insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            _load_own(context, credentials, (issued or credentials.issued()).certificate)
        except (OSError, ssl.SSLError) as error:
            where = credentials.ca_file or "its certificates"
            raise UnreachableError(f"{where}: TLS cannot be set up: {error}") from error
        return context


def in_cluster(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access | None:
    """Return the access that Kubernetes gives every pod. None outside a cluster.

    A port that is no number of a port, such as the URL of an older variable of Docker, is ignored.
    """
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT_HTTPS") or environment.get(
        "KUBERNETES_SERVICE_PORT", ""
    )
    if not host:
        return None
    credentials = Credentials(str(directory / "token"), ca_file=str(directory / "ca.crt"))
    namespace = _own_namespace(directory)
    return Access(host, _port_of(port), credentials=credentials, namespace=namespace)


def access_of(cluster: Mapping[str, Any], user: Mapping[str, Any], namespace: str = "") -> Access:
    """Return the access of two entries of a kubeconfig, with the user's program if any.

    Raises KeyError, TypeError, ValueError or InputError for malformed entries.
    """
    url, host, port = _url_of(cluster["server"])
    is_tls = url.scheme == "https"
    if "auth-provider" in user:
        raise ValueError("the user comes from an auth-provider, which is not supported")
    credentials = Credentials(
        token_file=str(user.get("tokenFile") or ""),
        token=str(user.get("token") or ""),
        ca_file=str(cluster.get("certificate-authority") or ""),
        ca_data=_text(cluster, "certificate-authority-data").decode("ascii"),
        certificate_file=str(user.get("client-certificate") or ""),
        key_file=str(user.get("client-key") or ""),
        certificate_data=_text(user, "client-certificate-data") + _text(user, "client-key-data"),
        server_name=str(cluster.get("tls-server-name") or ""),
        is_insecure=cluster.get("insecure-skip-tls-verify") is True,
        program=read_program(user["exec"], cluster) if user.get("exec") else None,
        impersonation=impersonation_of(user),
    )
    if not is_tls:
        _require_private(host, credentials)
    port = port or (HTTPS_PORT if is_tls else HTTP_PORT)
    prefix, namespace = url.path.rstrip("/"), namespace or DEFAULT_NAMESPACE
    return Access(host, port, is_tls, prefix, credentials, namespace)


def _url_of(server: str) -> tuple[SplitResult, str, int | None]:
    """Return the parts, host and port. No error quotes the text, which may hold a password."""
    try:
        url = urlsplit(server)
        host, port = url.hostname, url.port
    except ValueError:
        url, host, port = SplitResult("", "", "", "", ""), None, None
    if not host or url.scheme not in SCHEMES:
        raise ValueError("its server is not a URL such as https://HOST:PORT")
    return url, host, port


def _require_private(host: str, credentials: Credentials) -> None:
    """Raise ValueError if a token would pass a network without TLS."""
    has_token = credentials.token or credentials.token_file or credentials.program
    if has_token and not is_loopback(host):
        raise ValueError("its user's token needs a server with https: http would show it")


def is_loopback(host: str) -> bool:
    """Whether a connection to *host* stays on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _port_of(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) <= len(str(LARGEST_PORT)) else 0
    return number if 0 < number <= LARGEST_PORT else HTTPS_PORT


def _own_namespace(directory: Path) -> str:
    try:
        return (directory / "namespace").read_text().strip() or DEFAULT_NAMESPACE
    except (OSError, UnicodeDecodeError):
        return DEFAULT_NAMESPACE


def _text(table: Mapping[str, Any], key: str) -> bytes:
    return base64.b64decode(table.get(key, ""), validate=True)


def _load_own(context: ssl.SSLContext, credentials: Credentials, certificate: bytes) -> None:
    """Load the client's certificate, if any. OpenSSL reads it from files only."""
    if credentials.certificate_file:
        key_file = small_file(credentials.key_file) if credentials.key_file else None
        certificate_file = small_file(credentials.certificate_file)
        context.load_cert_chain(certificate_file, key_file, NO_PASSWORD)
    if certificate:
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, certificate)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=NO_PASSWORD)
        finally:
            os.close(descriptor)
