"""What stands in values.yaml beside the values: the comment above each key."""

import re

_KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z0-9_.-]+):(?: |$)")
_COMMENT = re.compile(r"^ *# ?(?P<text>.*)$")


def comments(text):
    """Return the comment that stands above each key, by the key's dotted path; '' without one."""
    found, path, block = {}, [], []
    for line in text.splitlines():
        if comment := _COMMENT.match(line):
            block.append(comment["text"].strip())
            continue
        if key := _KEY.match(line):
            depth = len(key["indent"]) // 2
            path = [*path[:depth], key["key"]]
            found[".".join(path)] = " ".join(block)
        block = []
    return found
