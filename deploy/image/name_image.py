# noqa: INP001 - a script that build runs by its path, with any python3
"""name_image.py LAYOUT REFERENCE: write the image's name into the annotations containerd reads."""

import json
import sys
from pathlib import Path


def main() -> None:
    """Name every image of the OCI layout that the command line names."""
    index = Path(sys.argv[1]) / "index.json"
    document = json.loads(index.read_text())
    for manifest in document["manifests"]:
        manifest["annotations"] = {
            "io.containerd.image.name": sys.argv[2],
            "org.opencontainers.image.ref.name": sys.argv[2].rpartition(":")[2],
        }
    index.write_text(json.dumps(document, sort_keys=True))


if __name__ == "__main__":
    main()
