"""The metrics of the power extender, of which a scheduler has asked nothing."""

import time

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.measures import Measures
from temper_plugin_power.extender.reading import twin_of_object
from temper_plugin_power.placing.subjects import Choices
from tests.power.extender.serving import a_twin


def extender_page():
    """Return the page of an extender that knows a node."""
    cluster = Cluster()
    cluster.put_twin(*twin_of_object(a_twin("n1")))
    return Measures(cluster, Choices(), time.time).text()
