"""The thread that writes to the cluster, where it fails by a fault of its own."""

from structlog.testing import capture_logs

from temper_core.testing import MadeContext, make_snapshot
from temper_kube.access import Access
from temper_plugin_kubernetes.accounts import WRITES, Account
from temper_plugin_kubernetes.annotation_requests import AnnotationRequests
from temper_plugin_kubernetes.options import Options
from temper_plugin_kubernetes.writing import Writer
from tests.control_plane.cluster import wait_until

NOWHERE = Access("127.0.0.1", 1, is_tls=False)


class Broken:
    """What a watch keeps, with a bug in it."""

    def __init__(self):
        self.asked = 0

    def __call__(self):
        self.asked += 1
        raise ZeroDivisionError


def failures(account):
    written = next(each for each in account.metrics() if each.name == WRITES)
    return {sample.labels["write"]: sample.value for sample in written.samples}.get("turn_failed")


def test_a_fault_of_its_own_is_counted_and_told_and_does_not_end_it():
    account, node = Account(), Broken()
    wishes = AnnotationRequests(MadeContext("one", print, print))
    writer = Writer(NOWHERE, Options(node="one", write_every_s=0.05), account, node, wishes)

    with capture_logs() as logs:
        writer.start()
        writer.tell(make_snapshot())
        wait_until(lambda: node.asked > 0 and failures(account), "a failure")
        asked = node.asked
        wait_until(lambda: writer.look() or node.asked > asked, "another turn")
        writer.close()

    assert {entry["event"] for entry in logs} >= {"cluster_writer_failed"}
