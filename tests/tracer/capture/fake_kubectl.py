"""kubectl without a cluster: objects from a folder, and ``exec`` in the host of a test.

``FAKE_KUBECTL`` names the folder. ``objects/KIND.NAME.json`` is what ``get`` prints, or for the
pods of a node ``objects/KIND.NODE.json`` where there is one. ``host.json`` is the command that
enters the host, or ``POD.json`` for an agent of that name. ``cut`` is the number of bytes of the
first copy that arrive.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(os.environ["FAKE_KUBECTL"])


def get(words):
    names = [word for word in words if not word.startswith("--")]
    node = [word.rpartition("=")[2] for word in words if "spec.nodeName" in word]
    path = FOLDER / "objects" / f"{'.'.join([*names, *node])}.json"
    if not path.exists():
        path = FOLDER / "objects" / f"{'.'.join(names)}.json"
    if not path.exists():
        kind, name = f"{names[0]}s", names[-1]
        sys.exit(f'Error from server (NotFound): {kind} "{name}" not found')
    sys.stdout.write(path.read_text())


def run(words):
    command = words[words.index("--") + 1 :]
    with (FOLDER / "log").open("a") as log:
        log.write(json.dumps(words) + "\n")
    # The pods of the objects have no cgroups.
    command = [word for word in command if not word.startswith("--pod=shop/web")]
    own = FOLDER / f"{words[words.index('--') - 1]}.json"
    entered = json.loads((own if own.exists() else FOLDER / "host.json").read_text())
    done = subprocess.run(
        [*entered["enter"], *command, *entered["options"]], stdout=subprocess.PIPE, check=False
    )
    content, cut = done.stdout, FOLDER / "cut"
    if "fetch" in command and cut.exists():
        content = content[: int(cut.read_text())]
        cut.unlink()
    sys.stdout.buffer.write(content)
    if done.returncode:
        sys.stderr.write(f"command terminated with exit code {done.returncode}\n")
    sys.exit(done.returncode)


words = [word for word in sys.argv[1:] if not word.startswith(("--kubeconfig=", "--context="))]
{"get": get, "exec": run}[words[0]](words[1:])
