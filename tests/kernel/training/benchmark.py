"""The benchmark command: asks the walk, at the Unix socket of its argument, for one measurement."""

import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as walk:
    walk.connect(sys.argv[1])
    value = float(walk.recv(100))
row = {"metric": "round", "value": value, "unit": "us", "better": "lower"}
sys.stdout.write(json.dumps(row) + "\n")
