"""A file of a NodeTwin, as something on the node writes it."""

import json
from datetime import UTC, datetime, timedelta


class TwinFile:
    """The specification at *path*."""

    def __init__(self, path):
        self.path = path

    def say(self, node="node-1", age_s=0, **cpu):
        """Write the specification of packages."""
        self._write({"nodeName": node, "profile": "eco", "cpu": cpu}, age_s)

    def say_gpus(self, watts):
        """Write the specification of GPUs."""
        cap = {"scope": "perGpu", "capWattsPerGpu": watts}
        self._write({"nodeName": "node-1", "gpu": {"powerCap": cap}})

    def _write(self, spec, age_s=0):
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        said_at = datetime.now(UTC) - timedelta(seconds=age_s)
        twin = {
            "kind": "NodeTwin",
            "spec": spec,
            "status": {"lastUpdated": said_at.isoformat()},
        }
        self.path.write_text(json.dumps(twin))
        self.path.chmod(0o600)
