# noqa: INP001 - a program that a script runs by its path
"""Writes a compacted topic under keys that come again, and reads another, until it is stopped."""

import os
import time
import uuid

from confluent_kafka import Consumer, Producer

BROKER = {"bootstrap.servers": "127.0.0.1:9092"}
KEYS = 5_000
PER_ROUND = 300


def _write() -> None:
    producer = Producer(BROKER | {"linger.ms": 5})
    number = 0
    while True:
        for _ in range(PER_ROUND):
            number += 1
            producer.produce("stock", key=str(number % KEYS), value=b"x" * 500)
        producer.poll(0)
        time.sleep(0.1)


def _read() -> None:
    while True:
        places = {"group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest"}
        consumer = Consumer(BROKER | places | {"auto.commit.interval.ms": 500})
        consumer.subscribe(["orders"])
        until = time.monotonic() + 10
        while time.monotonic() < until:
            consumer.consume(1000, timeout=0.5)
        consumer.close()


if os.fork():
    _write()
_read()
