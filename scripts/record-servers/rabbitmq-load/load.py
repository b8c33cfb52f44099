"""Publish and consume persistent messages until stopped: two queues of either kind, and one that only grows."""

import os
import time

import pika

BODY = b"x" * 1000
PERSISTENT = pika.BasicProperties(delivery_mode=2)
KEPT = 20_000


def connected():
    while True:
        try:
            return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", heartbeat=0))
        except pika.exceptions.AMQPConnectionError:
            time.sleep(0.5)


def opened(queue, kind):
    channel = connected().channel()
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
    return channel


def publish(queue, kind):
    channel = opened(queue, kind)
    channel.confirm_delivery()
    while True:
        channel.basic_publish("", queue, BODY, PERSISTENT)


def consume(queue, kind):
    channel = opened(queue, kind)
    channel.basic_qos(prefetch_count=20)
    for method, _, _ in channel.consume(queue):
        channel.basic_ack(method.delivery_tag)


def pile_up():
    channel = opened("backlog", "classic")
    while True:
        for _ in range(KEPT // 200):
            channel.basic_publish("", "backlog", BODY * 4, PERSISTENT)
        time.sleep(0.2)


def main():
    for kind in ("classic", "quorum"):
        for work in (publish, publish, consume):
            if not os.fork():
                work(kind, kind)
    pile_up()


main()
