"""What Mimir and Thanos do otherwise, by a real Prometheus behind a proxy that does the same.

Neither can be installed here. The proxy has the differences that a client meets: a tenant that must
be named, a prefix of the API, the longest query of a tenant (Mimir), and partial answers with
warnings (Thanos). Whatever else they do otherwise is not tested.
"""

import json
import re
import subprocess
import time
from urllib.parse import parse_qs

import httpx2
import pytest

from tests.patience import PATIENCE_S
from tests.rightsizer.fleet_series import MIB, Container, Series, deployed, make_blocks, serving
from tests.rightsizer.test_fleet import TEMPER
from tests.rightsizer.test_fleet_answers import answering, saying

DAY_S = 24 * 3600
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY_S}
_RANGE = re.compile(r"\[([0-9smhd]+)[\]:]")
NO_TENANT = {"status": "error", "errorType": "client", "error": "no org id"}
STORE_DOWN = "No StoreAPIs matched for this query: store-2 is down"


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """Return the address of a real Prometheus with one workload."""
    folder = tmp_path_factory.mktemp("dialects")
    series = Series(int(time.time()))
    deployed(series, "shop", "web-7c9f-x1", "web")
    own = Container(series, "shop", "web-7c9f-x1", "app").uses(0.4)
    own.sized(cpu_request=2, memory_request=100 * MIB)
    make_blocks(folder, series.lines())
    with serving(folder) as address:
        yield address


def rightsize(address, *options):
    command = [TEMPER, "rightsize", "--output", "json", "--prometheus", address, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def containers(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["containers"]


def seconds_of(duration):
    return sum(
        int(number) * SECONDS[unit] for number, unit in re.findall(r"(\d+)([smhd])", duration)
    )


def length_s(form):
    """Return the time that a query looks over: its window, and the longest range in it."""
    asked = {name: values[0] for name, values in parse_qs(form).items()}
    window = float(asked.get("end", 0)) - float(asked.get("start", 0))
    return window + max(map(seconds_of, _RANGE.findall(asked["query"])), default=0)


def forward(handler, form, behind, path):
    """Return what the real server answers."""
    head = {"Content-Type": handler.headers["Content-Type"]}
    return httpx2.post(f"{behind}{path}", content=form, headers=head, timeout=PATIENCE_S)


def mimir(behind, lengths, most_s=float("inf")):
    """Return a reply in the way of a Mimir, whose tenants' queries look over *most_s*."""

    def reply(handler, form):
        lengths.append(length_s(form))
        if handler.headers.get("X-Scope-OrgID") != "team-a":
            return saying(NO_TENANT, 401)(handler, form)
        if not handler.path.startswith("/prometheus/api/"):
            return saying(b"404 page not found", 404)(handler, form)
        if lengths[-1] > most_s:
            told = (
                f"the query time range exceeds the limit (query length: {lengths[-1]:.0f}s, "
                f"limit: {most_s}s) (err-mimir-max-query-length)"
            )
            refusal = {"status": "error", "errorType": "bad_data", "error": told}
            return saying(refusal, 422)(handler, form)
        answer = forward(handler, form, behind, handler.path.removeprefix("/prometheus"))
        return saying(answer.content, answer.status_code)(handler, form)

    return reply


def test_a_mimir_with_its_tenant_gives_the_report_of_the_prometheus_behind_it(behind):
    with answering(mimir(behind, [])) as address:
        done = rightsize(f"{address}/prometheus", "--prometheus-tenant", "team-a")

    assert containers(done) == containers(rightsize(behind))


def test_a_mimir_without_its_tenant_or_its_prefix_refuses_in_one_line(behind):
    with answering(mimir(behind, [])) as address:
        nobody = rightsize(f"{address}/prometheus")
        nowhere = rightsize(address, "--prometheus-tenant", "team-a")

    assert (nobody.returncode, nowhere.returncode) == (2, 2)
    assert "refuses with status 401 (no org id)" in nobody.stderr
    assert "the address needs the prefix of its API, such as /prometheus" in nowhere.stderr


@pytest.mark.parametrize("hours", [6, 48])
def test_no_query_looks_over_more_than_a_day_or_the_window(behind, hours):
    """So a tenant's limit on the length of queries need not be 14 days, as the peaks are."""
    lengths = []
    most_s = max(DAY_S, hours * 3600) + 600
    tenant = ("--prometheus-tenant", "team-a", "--hours", str(hours))
    with answering(mimir(behind, lengths, most_s)) as address:
        done = rightsize(f"{address}/prometheus", *tenant)

    assert containers(done)
    assert max(lengths) <= most_s


def test_a_query_that_is_too_long_for_a_tenant_is_one_line_with_what_to_do(behind):
    with answering(mimir(behind, [], 3600)) as address:
        done = rightsize(f"{address}/prometheus", "--prometheus-tenant", "team-a")

    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert "the query time range exceeds the limit" in last
    assert "--namespace, --hours or a longer --step make the question smaller" in last


def test_a_partial_answer_of_a_thanos_is_told_beside_the_report(behind):
    def reply(handler, form):
        answer = forward(handler, form, behind, handler.path)
        partial = {**answer.json(), "warnings": [STORE_DOWN]}
        saying(partial, answer.status_code)(handler, form)

    with answering(reply) as address:
        done = rightsize(address)

    assert containers(done) == containers(rightsize(behind))
    assert json.loads(done.stdout)["notes"][-1] == f"the server warns: {STORE_DOWN}"
    assert f"note: the server warns: {STORE_DOWN}" in done.stderr
