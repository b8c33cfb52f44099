"""``temper`` of an agent that has a trace of as many bytes as it is told, and sends 64 MiB."""

import json
import sys

size, words = int(sys.argv[1]), sys.argv[2:]
if "fetch" in words:
    sys.stdout.buffer.write(bytes(64 << 20))
else:
    json.dump({"id": "20261125-000000-0000", "state": "finished", "bytes": size}, sys.stdout)
