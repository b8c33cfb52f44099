"""Lists of objects as large as etcd takes them, and the memory of those that read them."""

import json
import tracemalloc

LARGE = 1_400_000
"""An object below etcd's usual bound of 1.5 MiB."""
MANY = 60
MOST_HELD = MANY // 2 * LARGE
"""Less than the objects together. The buffer of an answer that is no list has 32 MiB."""


def large(document):
    """Return *document* with a text that makes it as large as etcd takes it."""
    return {**document, "more": "x" * (LARGE - len(json.dumps(document)))}


def many(document):
    """Return the answer to a list of many such objects."""
    text = json.dumps(document)
    return 200, {}, ['{"items": [', *[text, ","] * (MANY - 1), text, '], "metadata": {}}']


def peak_of(act):
    """Return the most memory that *act* had, and what it returns."""
    tracemalloc.start()
    try:
        found = act()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak, found


def written_kubeconfig(folder, access):
    """Write a kubeconfig that leads to a server, and return its path."""
    path = folder / "kubeconfig"
    server = {"server": f"http://{access.host}:{access.port}"}
    document = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": server}],
        "users": [{"name": "me", "user": {}}],
    }
    path.write_text(json.dumps(document))
    return path
