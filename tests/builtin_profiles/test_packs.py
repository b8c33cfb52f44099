import pytest

import temper_plugin_builtin_profiles
from temper_core import Container, Detection, Detector, Treatment, WorkloadProfile
from temper_core.plugin_host import PluginHost
from temper_core.records.matching import ThreadIdentity, matches
from temper_core.testing import assert_keeps_contract, make_pod
from temper_plugin_builtin_profiles.detectors import detect_mysql, detect_pytorch
from tests.builtin_profiles.recorded import PACKS

# Threads that the recordings lack: X protocol, replication and plugins of MySQL.
MYSQL = {
    "connection": "connections",
    "xpl_worker-1": "connections",
    "xpl_accept-2": "rest",
    "ib_io_rd-12": "innodb",
    "ib_archiver": "innodb",
    "evt_sched": "rest",
    "mysqld": "unnamed",
}


def group_of(profile, comm, process, *, leader=False, title=""):
    """Choose the first group that takes the thread."""
    thread = ThreadIdentity("pod/", comm, process, is_leader=leader, title=title)
    for group in profile.thread_groups:
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


@pytest.mark.parametrize(("comm", "group"), MYSQL.items())
def test_mysqls_threads_fall_into_their_groups(comm, group):
    assert group_of(PACKS["mysql-innodb"], comm, "mysqld") == group


@pytest.mark.parametrize("program", ["mysqld", "mariadbd"])
def test_a_server_that_names_no_thread_yields_with_none_of_them(program):
    pack = PACKS["mysql-innodb"]
    treatments = {group.name: group.treatment for group in pack.thread_groups}

    assert treatments[group_of(pack, program, program)] is Treatment.NORMAL


def test_mysqls_groups_are_treated_as_published():
    groups = PACKS["mysql-innodb"].thread_groups

    assert [(g.name, g.treatment, g.cpu_fraction) for g in groups] == [
        ("connections", Treatment.EXCLUSIVE, 0.85),
        ("innodb", Treatment.BOOST, None),
        ("unnamed", Treatment.NORMAL, None),
        ("rest", Treatment.YIELD, None),
    ]


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_no_pack_claims_what_nobody_measured(pack):
    assert (pack.evidence.before, pack.evidence.after) == ("", "")


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_the_names_of_main_processes_are_not_longer_than_the_kernel_keeps(pack):
    assert all(len(process) <= 15 for process in pack.fingerprint.processes)


@pytest.mark.parametrize("detector", [detect_mysql, detect_pytorch])
def test_a_pod_without_a_known_process_is_not_recognised(detector):
    assert detector(make_pod()) is None


@pytest.mark.parametrize("process", ["mysqldump", "mysqld_exporter", "mariadb-dump", "python"])
def test_what_only_resembles_mysql_is_not_taken_for_it(process):
    assert detect_mysql(running(process)) is None


@pytest.mark.parametrize("process", ["mysqld", "mariadbd"])
def test_mysql_is_recognised_whatever_the_image(process):
    detection = detect_mysql(running(process))

    assert detection == Detection("mysql-innodb", 0.8, f"container 'db' runs {process}")


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

    assert set(found) <= set(PACKS)
    assert len(found) == 2


def running(*processes):
    container = Container("db", image="registry.example/own:1", processes=processes)
    return make_pod(containers=(container,))
