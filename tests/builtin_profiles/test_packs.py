import pytest

import temper_plugin_builtin_profiles
from temper_core import Container, Treatment, WorkloadProfile, parse_profile
from temper_core.plugin_host import PluginHost
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.matching import matches
from temper_core.records.profiles import LoadedProfile
from temper_core.records.threads import ThreadIdentity
from temper_core.testing import assert_keeps_contract, make_machine, make_pod
from tests.builtin_profiles.recorded import PACKS, RECORDINGS, WITHOUT_PACK

MACHINE = make_machine(8)
CATALOGUE = ProfileCatalogue(tuple(LoadedProfile(pack, "builtin") for pack in PACKS.values()))

# What no recording has: roles that the recorded servers did not play, older and newer titles.
# (pack, name, process, leads it, title) -> group
UNRECORDED = {
    ("mysql-innodb", "xpl_worker-1", "mysqld", False, ""): "connections",
    ("mysql-innodb", "xpl_accept-2", "mysqld", False, ""): "accepting",
    ("mysql-innodb", "mysqld", "mysqld", True, ""): "accepting",
    ("mysql-innodb", "mariadbd", "mariadbd", True, ""): "accepting",
    ("mysql-innodb", "ib_log_fl_notif", "mysqld", False, ""): "connections",
    ("mysql-innodb", "ss_ack", "mysqld", False, ""): "replication",
    ("mysql-innodb", "ib_io_rd-12", "mysqld", False, ""): "innodb",
    ("mysql-innodb", "rpl_rca_wkr-3", "mysqld", False, ""): "replication",
    ("mysql-innodb", "mysqld", "mysqld", False, ""): "unnamed",
    ("mysql-innodb", "worker_thread", "mariadbd", False, ""): "connections",
    ("mysql-innodb", "slave_sql", "mariadbd", False, ""): "replication",
    ("postgresql", *["postgres"] * 2, True, "postgres: wal writer process   "): "log-and-io",
    ("postgresql", *["postgres"] * 2, True, "postgres: io worker 0"): "log-and-io",
    ("postgresql", *["postgres"] * 2, True, "postgres: startup recovering 00000A1"): "writers",
    ("postgresql", *["postgres"] * 2, True, "postgres: main: walreceiver streaming"): "log-and-io",
    ("postgresql", *["postgres"] * 2, True, "postgres: app shop [local] COMMIT"): "backends",
    ("postgresql", *["postgres"] * 2, True, "postgres: parallel worker for PID 7 "): "parallel",
    ("postgresql", *["postgres"] * 2, True, "postgres: a b ::1(5432) idle"): "backends",
    ("postgresql", *["postgres"] * 2, True, "postgres: my app my db host.example(99) "): "backends",
    ("postgresql", *["postgres"] * 2, True, "postgres: TimescaleDB Scheduler"): "rest",
    ("postgresql", "pg_basebackup", "pg_basebackup", True, "pg_basebackup -D x"): "rest",
    ("redis", *["redis-server"] * 2, True, "redis-rdb-to-slaves *:6379"): "copies",
    ("redis", *["redis-server"] * 2, True, "redis-server *:6379 [cluster]"): "requests",
    ("redis", "module-worker", "redis-server", False, "redis-server *:6379"): "rest",
    ("memcached", "mc-ext-io", "memcached", False, ""): "maintenance",
    ("nginx", "nginx", "nginx", True, "nginx: worker process is shutting down"): "workers",
    ("nginx", "nginx-ingress-c", "nginx-ingress-c", True, "nginx-ingress-controller"): "around",
}
IMAGES = {
    "mysql:8.4": "mysql-innodb",
    "docker.io/library/mysql": "mysql-innodb",
    "docker.io/bitnami/mysql:9.1.0-debian-12-r3": "mysql-innodb",
    "container-registry.oracle.com/mysql/community-server:9.1": "mysql-innodb",
    "percona:8": "mysql-innodb",
    "docker.io/percona/percona-server:8.0.36": "mysql-innodb",
    "percona/percona-xtradb-cluster:8.0.35": "mysql-innodb",
    "mariadb:11": "mysql-innodb",
    "registry.example/mirror/mariadb:10.11@sha256:0123": "mysql-innodb",
    "postgres:17-alpine": "postgresql",
    "docker.io/bitnami/postgresql:16": "postgresql",
    "ghcr.io/cloudnative-pg/postgresql:17.2": "postgresql",
    "ghcr.io/zalando/spilo-16:3.3-p1": "postgresql",
    "pgvector/pgvector:pg17": "postgresql",
    "registry.example/mirror/pgvector/pgvector:pg17": "postgresql",
    "timescale/timescaledb-ha:pg16": "postgresql",
    "registry.example/mirror/postgis/postgis:17-3.5": "postgresql",
    "redis:7": "redis",
    "bitnami/redis-cluster:7.4": "redis",
    "redis/redis-stack-server:7.4.0-v1": "redis",
    "public.ecr.aws/docker/library/memcached:1.6": "memcached",
    "nginxinc/nginx-unprivileged:1.27": "nginx",
    "registry.k8s.io/ingress-nginx/controller:v1.11.2": "nginx",
    "bitnami/nginx-ingress-controller:1.11": "nginx",
    "registry.example/mirror/openresty/openresty:1.27-alpine": "nginx",
    "tomcat:10.1-jre17": "jvm",
    "docker.io/bitnami/tomcat:11": "jvm",
    "jetty:12": "jvm",
    "cassandra:5.0": "cassandra",
    "bitnami/cassandra:4.1": "cassandra",
    "docker.io/k8ssandra/cass-management-api:5.0.3-ubi": "cassandra",
    "mcr.microsoft.com/azureml/onnxruntime:latest": "onnxruntime",
    "ghcr.io/ggml-org/llama.cpp:server-b4000": "llama-cpp",
    "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime": "pytorch-training",
    "nvcr.io/nvidia/pytorch:26.01-py3": "pytorch-training",
    "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.6.0-cpu": "pytorch-training",
}
# They watch, operate or stand before what the packs are for.
OTHERS_IMAGES = [
    "prom/mysqld-exporter:v0.15",
    "bitnami/mysqld-exporter:0.15",
    "mysql/mysql-router:8.0",
    "percona/percona-xtradb-cluster-operator:1.14",
    "percona/percona-server-mongodb:7",
    "quay.io/prometheuscommunity/postgres-exporter:v0.15",
    "bitnami/postgres-exporter:0.15",
    "ghcr.io/cloudnative-pg/cloudnative-pg:1.24",
    "bitnami/pgbouncer:1.23",
    "oliver006/redis_exporter:v1.62",
    "bitnami/redis-exporter:1.62",
    "redis/redisinsight:2.58",
    "quay.io/prometheus/memcached-exporter:v0.14",
    "nginx/nginx-prometheus-exporter:1.3",
    "bitnami/jmx-exporter:1.0",
    "bitnami/cassandra-exporter:2.3",
    "ghcr.io/k8ssandra/cassandra-operator:1.23",
    "pytorch/torchserve:0.12.0-cpu",
    "eclipse-temurin:21-jre",
    "maven:3-eclipse-temurin-21",
    "apache/spark:4.0.0",
]
PROCESSES = {
    "mysqld": "mysql-innodb",
    "mariadbd": "mysql-innodb",
    "postgres": "postgresql",
    "redis-server": "redis",
    "memcached": "memcached",
    "nginx": "nginx",
    "torchrun": "pytorch-training",
    "llama-server": "llama-cpp",
}


def group_of(pack, comm, process, leader, title):
    thread = ThreadIdentity("pod/", comm, process, is_leader=leader, title=title)
    for group in PACKS[pack].thread_groups:
        if not group.match or any(matches(match, thread) for match in group.match):
            return group.name
    return None


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_builtin_profiles, "builtin-profiles")


def test_the_packs_are_contributed_under_their_ids():
    host = PluginHost()
    host.add(temper_plugin_builtin_profiles, "builtin-profiles")

    found = host.gather("temper_profiles", WorkloadProfile)

    assert [c.record.id for c in found] == sorted(PACKS)


@pytest.mark.parametrize(("thread", "group"), UNRECORDED.items(), ids=lambda each: str(each)[:60])
def test_threads_that_no_recording_has_fall_into_their_groups(thread, group):
    assert group_of(*thread) == group


@pytest.mark.parametrize("program", ["mysqld", "mariadbd"])
def test_a_server_that_names_no_thread_is_a_group_for_latency(program):
    treatments = {group.name: group.treatment for group in PACKS["mysql-innodb"].thread_groups}

    found = group_of("mysql-innodb", program, program, leader=False, title="")

    assert treatments[found] is Treatment.LATENCY


def test_mysqls_groups_are_treated_as_published():
    groups = {group.name: group for group in PACKS["mysql-innodb"].thread_groups}

    assert groups["connections"].treatment is Treatment.EXCLUSIVE
    assert groups["connections"].cpu_fraction == pytest.approx(0.85)
    assert groups["innodb"].treatment is Treatment.BOOST
    assert groups["rest"].treatment is Treatment.YIELD


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_the_names_of_main_processes_are_not_longer_than_the_kernel_keeps(pack):
    assert all(len(process) <= 15 for process in pack.fingerprint.processes)


@pytest.mark.parametrize(("image", "pack"), IMAGES.items())
def test_an_image_is_recognised(image, pack):
    assert chosen(CATALOGUE, image) == pack


@pytest.mark.parametrize("image", OTHERS_IMAGES)
def test_what_only_stands_beside_a_server_is_not_taken_for_it(image):
    assert chosen(CATALOGUE, image) is None


@pytest.mark.parametrize(("process", "pack"), PROCESSES.items())
def test_a_main_process_is_recognised_in_an_image_of_ones_own(process, pack):
    assert chosen(CATALOGUE, "registry.example/own:1", process) == pack


@pytest.mark.parametrize(
    "process", ["mysqldump", "mysqld_exporter", "pgbouncer", "redis-cli", "java", "python"]
)
def test_a_process_that_is_only_called_alike_is_not_recognised(process):
    assert chosen(CATALOGUE, "registry.example/own:1", process) is None


def test_a_profile_for_an_image_of_ones_own_goes_before_the_name_of_its_process():
    own = parse_profile(
        'id = "own"\nfingerprint.images = ["registry.example/own:*"]\n'
        '[[thread_groups]]\nname = "rest"\n',
        "own.toml",
    )
    catalogue = ProfileCatalogue((*CATALOGUE.profiles, LoadedProfile(own, "own.toml", True)))

    assert chosen(catalogue, "registry.example/own:1", "mysqld") == "own"


@pytest.mark.parametrize("recording", ["go-1.26.8", "gunicorn-27.0.1", "numpy-2.4.6-openblas"])
def test_no_name_tells_the_threads_apart_of_what_is_said_to_have_one_role(recording):
    assert any(recording.startswith(glob.rstrip("*")) for glob in WITHOUT_PACK)
    assert {each.comm == each.process for each in RECORDINGS[recording].threads} == {True}


def chosen(catalogue, image, *processes):
    container = Container("main", image=image, processes=processes)
    choice = catalogue.choose(make_pod(containers=(container,)), MACHINE)
    return choice.loaded.profile.id if choice.loaded else None
