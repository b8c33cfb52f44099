"""The memory of a ring while it is written."""

import numpy as np

from temper_plugin_tracer.capture.kernel_layout import RING
from temper_plugin_tracer.capture.rings import LAP_OF_EVENTS, Ring

LAYOUT = np.dtype([("pid", "<u4"), ("lap", "<u2")])


class PublishedMeanwhile(np.ndarray):
    """Records of which each copy has the fields of before, and the lap of after a publication."""

    def copy(self, order="C"):
        copied = np.array(self, order=order)
        copied["lap"] = 1
        return copied


def ring(records, reserved):
    state = np.zeros(1, RING)
    state["reserved"] = reserved
    return Ring(records, state, LAP_OF_EVENTS)


def test_a_record_that_is_published_while_it_is_copied_is_left_to_the_next_call():
    records = np.zeros(4, LAYOUT).view(PublishedMeanwhile)
    records[0] = (7, 1)
    read = ring(records, reserved=2)

    assert read.take()["pid"].tolist() == [7]

    records[1] = (8, 1)
    assert read.take()["pid"].tolist() == [8]


def test_the_records_of_two_laps_are_taken_in_order():
    records = np.zeros(4, LAYOUT)
    records["lap"], records["pid"] = 1, range(4)
    read = ring(records, reserved=4)
    first = read.take()["pid"].tolist()
    records[0] = (4, 2)
    read.state["reserved"] = 5

    assert first == [0, 1, 2, 3]
    assert read.take()["pid"].tolist() == [4]
