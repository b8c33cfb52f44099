"""Who waits for whom in the programs that packs are for, by the programs' own sources and manuals.

A row is one kind of thread: whether requests wait for it, and how. ``REQUEST`` threads serve
requests themselves. A ``PEER`` is treated as these are. Requests ``OFTEN`` wait for a thread, or
only ``LATE``: once it has fallen behind. ``NEVER`` is work that no request waits for, however late
it comes.
"""

from enum import StrEnum

from attrs import frozen

from temper_core import Treatment


class Waits(StrEnum):
    """How requests depend on a kind of thread."""

    REQUEST = "serves requests"
    PEER = "a request waits for it as often as for its own thread"
    OFTEN = "requests wait for it"
    LATE = "requests wait once it lags behind"
    NEVER = "no request waits"


ALLOWED = {
    Waits.REQUEST: {Treatment.EXCLUSIVE, Treatment.LATENCY, Treatment.BOOST, Treatment.NORMAL},
    Waits.PEER: {Treatment.EXCLUSIVE, Treatment.LATENCY},
    Waits.OFTEN: {Treatment.EXCLUSIVE, Treatment.LATENCY, Treatment.BOOST, Treatment.NORMAL},
    Waits.LATE: {Treatment.LATENCY, Treatment.BOOST, Treatment.NORMAL},
    Waits.NEVER: {Treatment.NORMAL, Treatment.YIELD},
}
"""The treatments that fit. Only what no request waits for may yield."""


@frozen
class Row:
    """A thread by its name, process, whether it leads it, title, and the time since its start.

    ``cpu_share`` is the share of a CPU that it uses, None if its behaviour is not known.
    """

    pack: str
    comm: str
    process: str
    waits: Waits
    why: str
    leads: bool = False
    title: str = ""
    parent: str = ""
    is_child: bool = False
    age_s: float = 3600.0
    cpu_share: float | None = None


JAVA, MYSQL, MARIA, PG = "java", "mysqld", "mariadbd", "postgres"
LLAMA, VALKEY = "llama-server", "valkey-server"
PEER = Waits.PEER
REQUEST, OFTEN, LATE, NEVER = Waits.REQUEST, Waits.OFTEN, Waits.LATE, Waits.NEVER
ROWS = (
    Row("jvm", "http-nio-8080-e", JAVA, REQUEST, "Tomcat's request thread"),
    Row("jvm", "qtp123-45", JAVA, REQUEST, "Jetty's request thread"),
    Row("jvm", "GC Thread#0", JAVA, OFTEN, "the program stands still while it works"),
    Row("jvm", "VM Thread", JAVA, OFTEN, "every safepoint; it is the serial collector"),
    Row("jvm", "G1 Conc#0", JAVA, LATE, "marking that lags behind ends in a full pause"),
    Row("jvm", "G1 Refine#0", JAVA, LATE, "cards that it leaves are refined in the pause"),
    Row("jvm", "ZWorkerOld#1", JAVA, LATE, "allocation stalls once memory is short"),
    Row("jvm", "ZWorkerYoung#1", JAVA, OFTEN, "allocation stalls"),
    Row("jvm", "Shenandoah GC T", JAVA, OFTEN, "pauses, and allocation stalls"),
    Row("jvm", "C2 CompilerThre", JAVA, LATE, "requests are interpreted meanwhile", age_s=10.0),
    Row("jvm", "C2 CompilerThre", JAVA, NEVER, "what is hot was compiled long ago"),
    Row("cassandra", "Native-Transpor", JAVA, REQUEST, "the pool of all stages"),
    Row("cassandra", "MutationStage-2", JAVA, REQUEST, "the same pool under another name"),
    Row("cassandra", "MemtableFlushWr", JAVA, LATE, "writes wait once memory is full"),
    Row(
        "cassandra",
        "CompactionExecu",
        JAVA,
        NEVER,
        "no read waits for it itself",
    ),
    Row("cassandra", "G1 Conc#0", JAVA, LATE, "as in every JVM"),
    Row("kafka", "G1 Conc#0", JAVA, LATE, "as in every JVM"),
    Row("mysql-innodb", "connection", MYSQL, REQUEST, "a connection's statements"),
    Row("mysql-innodb", "one_connection", MARIA, REQUEST, "the same"),
    Row("mysql-innodb", "mysqld", MYSQL, OFTEN, "it accepts connections", leads=True),
    Row("mysql-innodb", "mariadbd", MARIA, OFTEN, "it accepts connections", leads=True),
    Row("mysql-innodb", "mysqld", MYSQL, REQUEST, "before 8.0.27 nearly all are connections"),
    Row("mysql-innodb", "mariadbd", MARIA, REQUEST, "before 11 nearly all are connections"),
    Row("mysql-innodb", "ib_log_writer", MYSQL, PEER, "a commit sleeps until it has written"),
    Row("mysql-innodb", "ib_log_flush", MYSQL, PEER, "a commit sleeps until the fsync"),
    Row("mysql-innodb", "ib_log_wr_notif", MYSQL, PEER, "it wakes the commit up"),
    Row("mysql-innodb", "ib_log_fl_notif", MYSQL, PEER, "it wakes the commit up"),
    Row("mysql-innodb", "ib_pg_flush_co", MYSQL, LATE, "statements flush pages themselves"),
    Row("mysql-innodb", "ss_ack", MYSQL, LATE, "a semi-synchronous commit waits for it"),
    Row("mysql-innodb", "rpl_rca_wkr-1", MYSQL, LATE, "a replica falls behind"),
    Row("postgresql", PG, PG, REQUEST, "a backend", True, "postgres: app shop [local] SELECT"),
    Row("postgresql", PG, PG, NEVER, "long work", True, "postgres: parallel worker for PID 7"),
    Row("postgresql", PG, PG, PEER, "it holds the log's lock", True, "postgres: walwriter "),
    Row("postgresql", PG, PG, PEER, "synchronous commit", True, "postgres: walsender a ::1(1) x"),
    Row("postgresql", PG, PG, PEER, "reads wait for it (18)", True, "postgres: io worker 0"),
    Row("postgresql", PG, PG, LATE, "backends write themselves", True, "postgres: checkpointer "),
    Row("postgresql", PG, PG, NEVER, "a worker just forked, its title unread", True),
    Row("postgresql", PG, PG, NEVER, "it paces itself", True, "postgres: autovacuum worker shop"),
    Row("redis", "redis-server", "redis-server", REQUEST, "the event loop", leads=True),
    Row("redis", "bio_lazy_free", "redis-server", LATE, "eviction waits for it"),
    Row("redis", *["redis-server"] * 2, LATE, "WAIT", True, "redis-rdb-to-slaves *:6379"),
    Row("redis", "bio_aof", "redis-server", LATE, "the event loop waits for a late fsync"),
    Row(
        "redis",
        "redis-server",
        "redis-server",
        NEVER,
        "a snapshot, before it has its title",
        leads=True,
        parent="redis-server",
        is_child=True,
    ),
    Row(
        "redis",
        "redis-server",
        "redis-server",
        REQUEST,
        "the server in the background",
        leads=True,
        parent="systemd",
        is_child=True,
    ),
    Row("memcached", "mc-worker", "memcached", REQUEST, "a worker"),
    Row("memcached", "mc-lrumaint", "memcached", LATE, "it holds locks of the workers"),
    Row("nginx", "nginx", "nginx", REQUEST, "an event loop", True, "nginx: worker process"),
    Row("nginx", "nginx", "nginx", OFTEN, "a read of a file for one connection"),
    Row("nginx", "nginx", "nginx", NEVER, "the cache", True, "nginx: cache manager process"),
    Row("pytorch-training", "pt_main_thread", "pt_main_thread", REQUEST, "the step", leads=True),
    Row("pytorch-training", "pt_autograd_0", "python", REQUEST, "every step's gradients"),
    Row("pytorch-training", "pt_data_worker", "pt_data_worker", OFTEN, "the batch", leads=True),
    Row("onnxruntime", "python", "python", REQUEST, "the inference", cpu_share=0.4),
    Row("onnxruntime", "python", "python", OFTEN, "it calls the inference", True, cpu_share=0.01),
    Row("llama-cpp", LLAMA, LLAMA, REQUEST, "every layer ends together", cpu_share=0.9),
    Row("llama-cpp", LLAMA, LLAMA, OFTEN, "an HTTP thread", cpu_share=0.001),
    Row("envoy", "wrk:worker_0", "envoy", REQUEST, "it has the connections"),
    Row("envoy", "envoy", "envoy", LATE, "routes, endpoints and certificates", leads=True),
    Row("envoy", "AccessLogFlush", "envoy", LATE, "it holds the log's buffers"),
    Row("haproxy", "haproxy", "haproxy", REQUEST, "an event loop"),
    Row("haproxy", "haproxy", "haproxy", REQUEST, "the first event loop", leads=True),
    Row("node", "node", "node", REQUEST, "the event loop", leads=True),
    Row("node", "MainThread", "MainThread", REQUEST, "the event loop from 22 on", leads=True),
    Row("node", "libuv-worker", "node", OFTEN, "files, names and cryptography"),
    Row("node", "node", "node", LATE, "V8's workers, for which a collection waits"),
    Row("rabbitmq", "erts_sched_1", "beam.smp", REQUEST, "it runs the queues"),
    Row("rabbitmq", "erts_dios_1", "beam.smp", OFTEN, "reads and writes of files"),
    Row("rabbitmq", "sh", "sh", NEVER, "the start script", leads=True),
    Row("valkey", VALKEY, VALKEY, REQUEST, "the event loop", leads=True),
    Row("valkey", "io_thd_1", VALKEY, REQUEST, "it reads and writes for clients"),
    Row("valkey", "bio_aof", VALKEY, LATE, "the event loop waits for a late fsync"),
    Row("valkey", VALKEY, VALKEY, LATE, "WAIT", True, "valkey-rdb-to-slaves *:6379"),
    Row("valkey", VALKEY, VALKEY, NEVER, "a snapshot", True, parent=VALKEY, is_child=True),
    Row("valkey", VALKEY, VALKEY, REQUEST, "in the background", True, parent="sh", is_child=True),
)
