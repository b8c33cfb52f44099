# noqa: INP001 - a program that a script runs by its path
"""Publishes and consumes persistent messages, and lets one queue grow, until it is stopped."""

import os
import time

import pika
from pika.adapters.blocking_connection import BlockingChannel

BODY = b"x" * 1000
PERSISTENT = pika.BasicProperties(delivery_mode=2)
PER_ROUND = 100


def _connected() -> pika.BlockingConnection:
    # The port is open before the broker answers on it.
    while True:
        try:
            return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", heartbeat=0))
        except pika.exceptions.AMQPConnectionError:
            time.sleep(0.5)


def _opened(queue: str, kind: str) -> BlockingChannel:
    channel = _connected().channel()
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
    return channel


def _publish(kind: str) -> None:
    channel = _opened(kind, kind)
    channel.confirm_delivery()
    while True:
        channel.basic_publish("", kind, BODY, PERSISTENT)


def _consume(kind: str) -> None:
    channel = _opened(kind, kind)
    channel.basic_qos(prefetch_count=20)
    for method, _, _ in channel.consume(kind):
        channel.basic_ack(method.delivery_tag)


def _pile_up() -> None:
    channel = _opened("backlog", "classic")
    while True:
        for _ in range(PER_ROUND):
            channel.basic_publish("", "backlog", BODY * 4, PERSISTENT)
        time.sleep(0.2)


for each in ("classic", "quorum"):
    for work in (_publish, _publish, _consume):
        if not os.fork():
            work(each)
_pile_up()
