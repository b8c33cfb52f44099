"""A benchmark with a planted optimum: it asks a real agent which thread groups a pod has.

``planted.py SOCKET POD [GROUP=TREATMENT]...`` prints a JSON line. The value is 100, less a fifth
for each group that has the best treatment, with a noise of a hundredth. While safe mode is
requested it is 200.
"""

import json
import random
import socket
import sys

BEST = {"compute": "boost", "io": "boost", "rest": "yield"}
MEASURED = "latency"
STOCK = 200.0


def answer_of(path, target):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(path)
        request = f"GET {target} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n"
        agent.sendall(request.encode())
        answer = b"".join(iter(lambda: agent.recv(65_536), b""))
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def groups_of(path, pod):
    return answer_of(path, f"/explain?pod={pod}")["groups"]


def main(path, pod, *best):
    best = dict(each.split("=") for each in best) or BEST
    right = sum(best.get(group["name"]) == group["treatment"] for group in groups_of(path, pod))
    value = 100 * 0.8**right * random.gauss(1, 0.01)
    if answer_of(path, "/safe-mode")["requests"]:
        value = STOCK
    row = {"metric": MEASURED, "value": value, "unit": "ms", "better": "lower"}
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
