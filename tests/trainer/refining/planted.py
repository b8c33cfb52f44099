"""A benchmark with a planted optimum: it asks a real agent which thread groups a pod has.

``planted.py SOCKET POD`` prints a JSON line. The value is 100, less a fifth for each group that has
the best treatment, with a noise of a hundredth.
"""

import json
import random
import socket
import sys

BEST = {"compute": "boost", "io": "boost", "rest": "yield"}
MEASURED = "latency"


def groups_of(path, pod):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(path)
        request = f"GET /explain?pod={pod} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n"
        agent.sendall(request.encode())
        answer = b"".join(iter(lambda: agent.recv(65_536), b""))
    return json.loads(answer.partition(b"\r\n\r\n")[2])["groups"]


def main(path, pod):
    right = sum(BEST.get(group["name"]) == group["treatment"] for group in groups_of(path, pod))
    value = 100 * 0.8**right * random.gauss(1, 0.01)
    row = {"metric": MEASURED, "value": value, "unit": "ms", "better": "lower"}
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
