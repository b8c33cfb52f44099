import attrs
import pytest

import temper_plugin_builtin_profiles
from temper_core import Container, Detection, Detector, Treatment, WorkloadProfile
from temper_core.plugin_host import PluginHost
from temper_core.records.matching import Matcher, ThreadIdentity, holds
from temper_core.testing import assert_keeps_contract, make_pod
from temper_plugin_builtin_profiles.detectors import detect_mysql, detect_pytorch
from temper_plugin_builtin_profiles.packs import read_packs

PACKS = {profile.id: profile for profile in read_packs()}

# The names that MySQL 8.0.27 and later give their threads, as ps shows them.
MYSQL = {
    "mysqld": "rest",
    "connection": "connections",
    "ib_io_ibuf": "innodb",
    "ib_io_log": "innodb",
    "ib_io_rd-1": "innodb",
    "ib_pg_flush_co": "innodb",
    "ib_pg_flush-1": "innodb",
    "ib_srv_purge": "innodb",
    "ib_srv_wkr-1": "innodb",
    "ib_clone_gtid": "innodb",
    "evt_sched": "rest",
    "sig_handler": "rest",
    "xpl_accept-2": "rest",
    "gtid_zip": "rest",
}
PYTORCH = {
    "pt_main_thread": "rest",
    "pt_autograd_0": "rest",
    "pt_data_worker": "feeders",
    "pt_data_pin": "feeders",
    "pt_elastic": "rest",
    "python": "rest",
}


def group_of(profile, comm):
    """Choose the first group whose static match holds, as the engine's layers would."""
    thread = ThreadIdentity(cgroup="pod/", comm=comm, process="main")
    for group in profile.thread_groups:
        assert all(match.is_static for match in group.match)
        prefixes = [Matcher("CommPrefix", match.comm_prefix) for match in group.match]
        if not prefixes or any(holds(prefix, thread) for prefix in prefixes):
            return group.name
    return None


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_builtin_profiles, "builtin-profiles")


def test_the_packs_are_contributed_under_their_ids():
    host = PluginHost()
    host.add(temper_plugin_builtin_profiles, "builtin-profiles")

    found = host.gather("temper_profiles", WorkloadProfile)

    assert [c.record.id for c in found] == ["mysql-innodb", "pytorch-training"]


@pytest.mark.parametrize(("comm", "group"), MYSQL.items())
def test_mysqls_threads_fall_into_their_groups(comm, group):
    assert group_of(PACKS["mysql-innodb"], comm) == group


@pytest.mark.parametrize(("comm", "group"), PYTORCH.items())
def test_pytorchs_threads_fall_into_their_groups(comm, group):
    assert group_of(PACKS["pytorch-training"], comm) == group


def test_mysqls_groups_are_treated_as_published():
    groups = PACKS["mysql-innodb"].thread_groups

    assert [(g.name, g.treatment, g.cpu_fraction) for g in groups] == [
        ("connections", Treatment.EXCLUSIVE, 0.85),
        ("innodb", Treatment.BOOST, None),
        ("rest", Treatment.YIELD, None),
    ]


def test_pytorchs_groups_are_treated_as_published():
    groups = PACKS["pytorch-training"].thread_groups

    assert [(g.name, g.treatment) for g in groups] == [
        ("feeders", Treatment.LATENCY),
        ("rest", Treatment.NORMAL),
    ]


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_no_pack_claims_what_nobody_measured(pack):
    assert set(attrs.asdict(pack.evidence).values()) == {""}


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_no_name_is_longer_than_the_kernel_keeps(pack):
    prefixes = [m.comm_prefix for group in pack.thread_groups for m in group.match]

    assert all(len(prefix) <= 15 for prefix in prefixes)
    assert all(len(process) <= 15 for process in pack.fingerprint.processes)


@pytest.mark.parametrize("detector", [detect_mysql, detect_pytorch])
def test_a_pod_without_a_known_process_is_not_recognised(detector):
    assert detector(make_pod()) is None


@pytest.mark.parametrize("process", ["mariadbd", "mysqldump", "python"])
def test_what_only_resembles_mysql_is_not_taken_for_it(process):
    assert detect_mysql(running(process)) is None


def test_mysqld_is_recognised_whatever_the_image():
    detection = detect_mysql(running("mysqld"))

    assert detection == Detection("mysql-innodb", 0.8, "container 'db' runs mysqld")


def test_the_surest_sign_of_pytorch_decides():
    assert detect_pytorch(running("torchrun")).confidence == pytest.approx(0.6)
    assert detect_pytorch(running("torchrun", "pt_main_thread")).confidence == pytest.approx(0.8)


def test_every_detector_names_a_pack_that_ships():
    host = PluginHost()
    host.add(temper_plugin_builtin_profiles, "builtin-profiles")
    everything = running("mysqld", "pt_main_thread")

    found = [
        host.call(c.plugin, c.record.detect, everything).profile
        for c in host.gather("temper_detectors", Detector)
    ]

    assert set(found) == set(PACKS)


def running(*processes):
    container = Container("db", image="registry.example/own:1", processes=processes)
    return make_pod(containers=(container,))
