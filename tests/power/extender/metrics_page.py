"""The metrics of the power extender, of which a scheduler has asked nothing."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.measures import Measures
from temper_plugin_power.extender.reading import twin_of_object
from temper_plugin_power.placing.subjects import Choices
from temper_serving.certificate_files import CertificateFiles
from tests.power.extender.certificate_pair import certificate_pair
from tests.power.extender.serving import a_twin


def extender_page():
    """Return the page of an extender that knows a node."""
    cluster = Cluster()
    cluster.put_twin(*twin_of_object(a_twin("n1")))
    with TemporaryDirectory() as directory:
        certificate_pair(Path(directory))
        files = (Path(directory) / name for name in ("tls.crt", "tls.key"))
        return Measures(cluster, Choices(), time.time, CertificateFiles.load(*files)).text()
