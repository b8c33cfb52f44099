"""What is applied by reports, and what an undo goes back to."""

import pytest

from temper_core import InputError
from temper_plugin_rightsizer.applying.edits import applying, undoing
from temper_plugin_rightsizer.applying.record import KEY
from temper_plugin_rightsizer.changes import ContainerChange, patched_lists

CPU, MEMORY = "requests.cpu", "requests.memory"
CPU_LIMIT, MEMORY_LIMIT = "limits.cpu", "limits.memory"


class Deployment:
    """An object of an API server. ``containers`` has the amounts of each, by their places."""

    def __init__(self, **containers):
        self.containers = containers
        self.record = None

    @property
    def item(self):
        changes = [ContainerChange(name, False, {}, at) for name, at in self.containers.items()]
        metadata = {"namespace": "shop", "name": "web", "annotations": {KEY: self.record}}
        return {"metadata": metadata, "spec": {"template": {"spec": patched_lists(changes)}}}

    def apply(self, container="app", **amounts):
        """Apply a report that was made with the present amounts."""
        after = {place.replace("_", "."): amount for place, amount in amounts.items()}
        present = self.containers[container]
        change = ContainerChange(
            container, False, {place: present.get(place) for place in after}, after
        )
        self._take(applying("Deployment", self.item, [change]))

    def undo(self):
        self._take(undoing("Deployment", self.item))

    def _take(self, edit):
        self.record = edit.record
        for change in edit.changes:
            self.containers[change.container].update(change.after)


@pytest.mark.parametrize(
    ("by_hand", "undone"),
    [("200m", "1"), ("0.2", "1"), ("3", "3"), ("1000m", "1000m"), (None, None)],
    ids=["untouched", "spelled anew", "raised", "as it was first", "removed"],
)
def test_an_undo_goes_back_to_what_was_set_by_hand_between_two_reports(by_hand, undone):
    web = Deployment(app={CPU: "1"})
    web.apply(requests_cpu="200m")
    web.containers["app"][CPU] = by_hand
    web.apply(requests_cpu="250m")

    web.undo()

    assert web.containers == {"app": {CPU: undone}}
    assert web.record is None


@pytest.mark.parametrize(("by_hand", "undone"), [(None, "1Gi"), ("512Mi", "512Mi")])
def test_so_it_does_where_the_first_report_removed_the_amount(by_hand, undone):
    web = Deployment(app={MEMORY_LIMIT: "1Gi"})
    web.apply(limits_memory=None)
    web.containers["app"][MEMORY_LIMIT] = by_hand
    web.apply(limits_memory="256Mi")

    web.undo()

    assert web.containers == {"app": {MEMORY_LIMIT: undone}}


def test_the_amount_of_the_last_hand_is_the_one():
    web = Deployment(app={CPU: "1"})
    for by_hand, applied in (("1", "200m"), ("3", "2500m"), ("4", "3500m"), ("3500m", "3")):
        web.containers["app"][CPU] = by_hand
        web.apply(requests_cpu=applied)

    web.undo()

    assert web.containers == {"app": {CPU: "4"}}


def test_places_that_nobody_else_has_set_go_back_to_what_was_there_first():
    web = Deployment(app={CPU: "1", MEMORY: "2Gi", CPU_LIMIT: "8", MEMORY_LIMIT: "4Gi"})
    web.apply(requests_cpu="200m", requests_memory="1Gi", limits_cpu="4", limits_memory="2Gi")
    web.containers["app"] |= {CPU: "3", MEMORY_LIMIT: "3Gi"}
    web.apply(requests_cpu="2", requests_memory="900Mi", limits_cpu="5", limits_memory="1500Mi")

    web.undo()

    assert web.containers["app"] == {CPU: "3", MEMORY: "2Gi", CPU_LIMIT: "8", MEMORY_LIMIT: "3Gi"}


@pytest.mark.parametrize(
    ("first", "applied", "by_hand"),
    [
        ({CPU: "50m", CPU_LIMIT: "100m"}, ("300m", "500m"), {CPU: "400m"}),
        ({CPU: "1", CPU_LIMIT: "2"}, ("200m", "400m"), {CPU_LIMIT: "600m"}),
    ],
    ids=["the limit was lower", "the request was higher"],
)
def test_no_undo_asks_for_more_than_the_limit(first, applied, by_hand):
    web = Deployment(app=dict(first))
    web.apply(requests_cpu=applied[0], limits_cpu=applied[1])
    web.containers["app"].update(by_hand)
    at_hand = dict(web.containers["app"])
    web.apply(requests_cpu="350m", limits_cpu="550m")

    web.undo()

    assert web.containers["app"] == at_hand


def test_a_limit_set_by_hand_keeps_the_request_that_only_the_first_report_changed():
    web = Deployment(app={CPU: "1", CPU_LIMIT: "2"})
    web.apply(requests_cpu="200m")
    web.containers["app"][CPU_LIMIT] = "500m"
    web.apply(limits_cpu="400m")

    web.undo()

    assert web.containers["app"] == {CPU: "200m", CPU_LIMIT: "500m"}


def test_what_is_set_by_hand_in_one_container_is_nothing_to_another():
    web = Deployment(app={CPU: "1"}, side={CPU: "1"})
    for name in web.containers:
        web.apply(name, requests_cpu="200m")
    web.containers["app"][CPU] = "3"
    web.containers["new"] = {CPU: "2"}
    for name in web.containers:
        web.apply(name, requests_cpu="300m")

    web.undo()

    assert web.containers == {"app": {CPU: "3"}, "side": {CPU: "1"}, "new": {CPU: "2"}}


def test_a_container_that_was_removed_and_came_back_keeps_its_new_amounts():
    web = Deployment(app={CPU: "1"}, side={CPU: "1"})
    web.apply("side", requests_cpu="200m")
    del web.containers["side"]
    web.apply("app", requests_cpu="300m")
    web.containers["side"] = {CPU: "500m"}
    web.apply("side", requests_cpu="400m")

    web.undo()

    assert web.containers == {"app": {CPU: "1"}, "side": {CPU: "500m"}}


def test_what_is_set_by_hand_and_left_by_the_next_report_stays():
    web = Deployment(app={CPU: "1", MEMORY: "2Gi"})
    web.apply(requests_cpu="200m", requests_memory="1Gi")
    web.containers["app"][MEMORY] = "3Gi"
    web.apply(requests_cpu="300m")

    web.undo()

    assert web.containers["app"] == {CPU: "1", MEMORY: "3Gi"}


def test_a_container_that_is_gone_at_the_next_report_keeps_nothing_from_its_undo():
    web = Deployment(app={CPU: "1"}, side={CPU: "1"})
    for name in web.containers:
        web.apply(name, requests_cpu="200m")
    del web.containers["side"]
    web.apply("app", requests_cpu="300m")

    web.undo()

    assert web.containers == {"app": {CPU: "1"}}


def test_a_limit_that_no_report_has_changed_bounds_the_request_that_comes_back():
    web = Deployment(app={CPU: "1", CPU_LIMIT: "2", MEMORY: "2Gi"})
    web.apply(requests_cpu="200m")
    web.containers["app"][CPU_LIMIT] = "500m"
    web.apply(requests_memory="1Gi")

    web.undo()

    assert web.containers["app"] == {CPU: "200m", CPU_LIMIT: "500m", MEMORY: "2Gi"}


@pytest.mark.parametrize("place", [CPU, MEMORY])
def test_an_undo_leaves_what_was_set_by_hand_after_the_last_report(place):
    web = Deployment(app={CPU: "1", MEMORY: "2Gi"})
    web.apply(requests_cpu="200m", requests_memory="1Gi")
    web.containers["app"][place] = "3"

    with pytest.raises(InputError, match=rf"{place} .* is 3, and was "):
        web.undo()


def test_a_malformed_record_is_not_overwritten():
    web = Deployment(app={CPU: "1"})
    web.record = "{"

    with pytest.raises(InputError, match="not JSON"):
        web.apply(requests_cpu="200m")
