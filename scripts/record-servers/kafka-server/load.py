"""Load a broker until stopped: write a compacted topic under keys that come again, and read the other topic."""

import os
import time
import uuid

from confluent_kafka import Consumer, Producer

BROKER = {"bootstrap.servers": "127.0.0.1:9092"}
KEYS = 5_000
PER_ROUND = 300


def write():
    producer = Producer(BROKER | {"linger.ms": 5})
    number = 0
    while True:
        for _ in range(PER_ROUND):
            number += 1
            producer.produce("stock", key=str(number % KEYS), value=b"x" * 500)
        producer.poll(0)
        time.sleep(0.1)


def read():
    while True:
        places = {"group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest"}
        consumer = Consumer(BROKER | places | {"auto.commit.interval.ms": 500})
        consumer.subscribe(["orders"])
        until = time.monotonic() + 10
        read = 0
        while time.monotonic() < until:
            read += len(consumer.consume(1000, timeout=0.5))
        consumer.close()
        print(f"read {read} messages in 10 s", flush=True)


if os.fork():
    write()
read()
