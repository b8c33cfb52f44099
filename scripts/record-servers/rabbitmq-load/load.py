# noqa: INP001 - a program that a script runs by its path
"""Publishes to queues of a RabbitMQ on loopback, and consumes, until it is stopped."""

import os
import time

import pika

BODY = b"x" * 1000
PERSISTENT = pika.BasicProperties(delivery_mode=2)
KEPT = 20_000


def connected() -> pika.BlockingConnection:
    """Connect, once the server is up."""
    while True:
        try:
            return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", heartbeat=0))
        except pika.exceptions.AMQPConnectionError:
            time.sleep(0.5)


def opened(queue: str, kind: str) -> pika.channel.Channel:
    """Open a durable queue."""
    channel = connected().channel()
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
    return channel


def publish(queue: str, kind: str) -> None:
    """Publish persistent messages, each confirmed."""
    channel = opened(queue, kind)
    channel.confirm_delivery()
    while True:
        channel.basic_publish("", queue, BODY, PERSISTENT)


def consume(queue: str, kind: str) -> None:
    """Consume and acknowledge messages."""
    channel = opened(queue, kind)
    channel.basic_qos(prefetch_count=20)
    for method, _, _ in channel.consume(queue):
        channel.basic_ack(method.delivery_tag)


def pile_up() -> None:
    """Publish to a queue that has no consumer."""
    channel = opened("backlog", "classic")
    while True:
        for _ in range(KEPT // 200):
            channel.basic_publish("", "backlog", BODY * 4, PERSISTENT)
        time.sleep(0.2)


def main() -> None:
    """Run all of it, each part in a process of its own."""
    for kind in ("classic", "quorum"):
        for work in (publish, publish, consume):
            if not os.fork():
                work(kind, kind)
    pile_up()


main()
