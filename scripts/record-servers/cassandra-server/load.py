# noqa: INP001 - a program that a script runs by its path
"""Writes and reads rows of a Cassandra on loopback until it is stopped."""

import secrets

from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args

ROWS = 20_000
BATCH = 400

session = Cluster(["127.0.0.1"]).connect()
session.execute(
    "CREATE KEYSPACE IF NOT EXISTS shop WITH replication = "
    "{'class': 'SimpleStrategy', 'replication_factor': 1}"
)
session.execute(
    "CREATE TABLE IF NOT EXISTS shop.orders (id int PRIMARY KEY, what text) WITH compaction = "
    "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}"
)
write = session.prepare("INSERT INTO shop.orders (id, what) VALUES (?, ?)")
read = session.prepare("SELECT what FROM shop.orders WHERE id = ?")
while True:
    chosen = [secrets.randbelow(ROWS) for _ in range(BATCH)]
    rows = [(row, secrets.token_hex(1_000)) for row in chosen]
    execute_concurrent_with_args(session, write, rows, concurrency=32)
    execute_concurrent_with_args(session, read, [(row,) for row in chosen], concurrency=32)
    session.execute("SELECT count(*) FROM shop.orders LIMIT 500")
