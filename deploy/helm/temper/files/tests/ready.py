"""Request /readyz of every agent behind a headless service. Exit 1 if one fails or there is none.

helm passes this text to the interpreter of the image, with the service's name and port.
"""  # noqa: INP001 - it is not a module

import socket
import sys
import urllib.error
import urllib.request

ANSWER_S = 10
LONGEST = 1000


def main(host: str, port: str) -> int:
    """Print one line for each agent and return the exit status."""
    try:
        entries = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        sys.stdout.write(f"{host}: no agent is there ({error.strerror})\n")
        return 1
    answers = {
        address: _refusal(address, port) for address in {str(entry[4][0]) for entry in entries}
    }
    for address, refusal in sorted(answers.items()):
        sys.stdout.write(f"{address} is {f'not ready: {refusal}' if refusal else 'ready'}\n")
    return int(any(answers.values()))


def _refusal(address: str, port: str) -> str:
    host = f"[{address}]" if ":" in address else address
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/readyz", timeout=ANSWER_S):
            return ""
    except urllib.error.HTTPError as error:
        text = error.read(LONGEST).decode(errors="replace").strip() or str(error)
        # Whatever answers at the address may write to the terminal of who asks.
        return text.encode("unicode_escape").decode("ascii")
    except OSError as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
