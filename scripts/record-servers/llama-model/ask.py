# noqa: INP001 - a program that a script runs by its path
"""Asks a llama.cpp server on port 8080 for text from four threads, until it is stopped."""

import json
import threading
import urllib.request

QUESTION = json.dumps({"prompt": "once upon a time " * 20, "n_predict": 100, "ignore_eos": True})


def ask() -> None:
    """Ask again and again."""
    while True:
        request = urllib.request.Request(
            "http://127.0.0.1:8080/completion",
            data=QUESTION.encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - the address is above
            answer.read()


for _ in range(4):
    threading.Thread(target=ask).start()
