"""A real Prometheus scrapes the fleet server, which asks three real agents."""

import httpx2

from tests.control_plane.cluster import wait_until
from tests.kubernetes.fleet.yard import TOKEN
from tests.patience import PATIENCE_S


def asked(prometheus, query):
    """Return the values of *query* by the labels of its series but those of the target."""
    answer = httpx2.get(f"{prometheus}/api/v1/query", params={"query": query}, timeout=PATIENCE_S)
    return {
        tuple(
            value
            for label, value in each["metric"].items()
            if label not in {"__name__", "instance", "job"}
        ): float(each["value"][1])
        for each in answer.json()["data"]["result"]
    }


def test_a_prometheus_has_the_nodes_their_ages_and_the_requests(fleet, prometheus_of_agents):
    with httpx2.Client(base_url=fleet.address, timeout=PATIENCE_S) as client:
        begun = client.post("login", json={"token": TOKEN}).raise_for_status()
        client.headers["temper-session"] = begun.json()["key"]
        node = next(iter(fleet.agents))
        assert client.get(f"node/{node}/observe").status_code == 200

        def all_answer():
            client.get("fleet/nodes").raise_for_status()
            nodes = asked(prometheus_of_agents, "temper_dashboard_nodes")
            return nodes if nodes.get(("answers",)) == len(fleet.agents) else None

        nodes = wait_until(all_answer, "the Prometheus has the nodes")

    ages = asked(prometheus_of_agents, "temper_dashboard_answer_age_seconds")
    requests = asked(
        prometheus_of_agents, 'sum by (kind) (temper_dashboard_requests_total{status="2xx"})'
    )
    assert nodes["away",] == 0
    assert set(ages) >= {(name,) for name in fleet.agents}
    assert all(0 <= ages[name,] < PATIENCE_S for name in fleet.agents)
    assert requests["node",] >= 1
    assert requests["fleet",] >= 1
    assert asked(prometheus_of_agents, 'up{job="temper-dashboard"}') == {(): 1}
