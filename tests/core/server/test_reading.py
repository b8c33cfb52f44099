import json

import pytest
from attrs import evolve

from temper_core.records.checks import Check, CheckState
from temper_core.records.invariants import Invariant
from temper_core.records.lint import Severity
from temper_core.records.snapshots import Mode, Status


def test_every_endpoint_of_the_core_answers_on_both_sockets(agent):
    paths = ["/", "/metrics", "/observe", "/healthz", "/readyz", "/plugins", "/config", "/plan"]
    paths += ["/explain", "/safe-mode", "/openapi.json", "/index", "/checks", "/invariants"]

    statuses = {
        (name, path): client.get(path).status_code
        for name, client in (("tcp", agent.tcp), ("unix", agent.unix))
        for path in paths
    }

    assert set(statuses.values()) == {200}


def test_the_published_jq_example_works_on_observe(agent):
    document = agent.tcp.get("/observe").json()

    layers = [{key: layer[key] for key in ("name", "cpus", "util")} for layer in document["layers"]]
    assert layers[0] == {"name": "critical", "cpus": [0, 1], "util": 0.61}


def test_a_number_that_json_cannot_say_becomes_null(agent, view):
    layers = tuple(evolve(layer, cpus_used=float("nan")) for layer in view.last.layers)
    view.last = evolve(view.last, layers=layers)

    text = agent.tcp.get("/observe").text

    assert "NaN" not in text
    assert json.loads(text)["layers"][1]["cpus_used"] is None


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (float("inf"), None),
        (10**5000, None),
        ({"a"}, "{'a'}"),
        (b"x" * 999, str(b"x" * 999)[:200]),
        (None, None),
        (True, True),
        ("text", "text"),
    ],
    ids=["infinite", "huge", "set", "bytes", "none", "true", "text"],
)
def test_evidence_that_json_cannot_say_costs_observe_nothing(agent, view, seen, said):
    odd = evolve(view.last.violations[0], evidence={"seen": seen})
    view.last = evolve(view.last, violations=(odd,))

    response = agent.tcp.get("/observe")

    assert response.status_code == 200
    assert response.json()["violations"][0]["evidence"] == {"seen": said}


def test_top_bounds_the_threads_of_observe(agent, view, fakes):
    thread = view.last.threads[0]
    view.last = fakes.a_snapshot(threads=tuple(evolve(thread, tid=n) for n in range(9)))

    threads = agent.tcp.get("/observe?top=4").json()["threads"]

    assert len([row for row in threads if row["tid"] is not None]) == 4


@pytest.mark.parametrize(
    "top",
    [
        *("0", "-1", "1.5", "ten", "", "5001", "٣", "1 "),
        pytest.param("9" * 400, id="large"),
        pytest.param("0001" + "0" * 4400, id="padded"),
    ],
)
def test_a_top_that_is_no_number_of_threads_is_named(agent, top):
    response = agent.tcp.get("/observe", params={"top": top})

    assert response.status_code == 400
    assert response.json()["error"].startswith("top: must be a whole number from 1 to 5000")


def test_an_endpoint_that_fails_for_everybody_writes_one_traceback(agent, view, capfd):
    view.last = "no snapshot"

    responses = [agent.tcp.get("/observe") for _ in range(20)]

    assert {response.status_code for response in responses} == {500}
    assert responses[0].json()["error"] == "internal error; the log has it"
    written = "".join(capfd.readouterr())
    assert written.count("Traceback") == 1
    assert written.count("request_failed") == 1
    assert agent.tcp.get("/healthz").status_code == 200


def test_an_answer_that_is_too_large_is_refused_in_one_line(agent, view, capfd):
    view.last = evolve(view.last, defects=("x" * (17 << 20),))

    response = agent.tcp.get("/observe")

    assert response.status_code == 503
    assert response.json()["error"].startswith("/observe answers with 17")
    assert "Traceback" not in "".join(capfd.readouterr())


def test_observe_is_unavailable_before_the_first_observation(agent, view):
    view.last = None

    response = agent.tcp.get("/observe")

    assert response.status_code == 503
    assert "nothing was observed yet" in response.json()["error"]


def test_an_unknown_query_parameter_is_refused_with_those_that_are_known(agent):
    response = agent.tcp.get("/observe?tpo=3")

    assert response.status_code == 400
    assert response.json()["error"] == "unknown query parameter 'tpo'; allowed are: top"


def test_health_follows_the_loop(agent, view):
    assert agent.tcp.get("/healthz").status_code == 200

    view.alive = False

    assert agent.tcp.get("/healthz").status_code == 503
    assert agent.tcp.get("/readyz").status_code == 503


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        (Mode.ENFORCING, 200),
        (Mode.RELOADING, 200),
        (Mode.OBSERVE_ONLY, 200),
        (Mode.SAFE_MODE, 503),
    ],
)
def test_an_agent_is_ready_while_it_does_all_it_can(agent, view, mode, status):
    view.state = Status(mode, "because")

    response = agent.tcp.get("/readyz")

    assert response.status_code == status
    assert response.json() == {
        "ready": status == 200,
        "mode": mode.value,
        "reason": "because",
        "detail": "",
    }


def test_an_agent_is_not_ready_before_it_has_looked_at_the_node(agent, view):
    view.last = None

    assert agent.tcp.get("/readyz").status_code == 503


def test_an_agent_whose_looks_fail_is_not_ready_and_says_why(agent, view):
    view.failing = {"observe": "RecursionError('maximum recursion depth exceeded')"}

    response = agent.tcp.get("/readyz")

    assert response.status_code == 503
    assert "observe fails: RecursionError('maximum recursion" in response.text


@pytest.mark.parametrize(
    ("age", "status", "reason"),
    [
        (60.0, 200, None),
        (61.0, 503, "the pods are 61 s old"),
        (float("inf"), 503, "the pod source has not answered yet"),
    ],
)
def test_an_agent_is_not_ready_on_pods_that_are_stale_and_says_so(agent, view, age, status, reason):
    view.pods_age = age

    response = agent.tcp.get("/readyz")

    assert response.status_code == status
    assert response.json().get("error", "").startswith(reason or "")
    assert agent.tcp.get("/healthz").status_code == 200


def test_config_is_byte_for_byte_what_the_engine_was_given(agent, view):
    response = agent.tcp.get("/config")

    assert response.text == view.in_force.config
    assert response.headers["content-type"] == "application/json"


def test_the_plan_in_force_is_a_document(agent, view):
    view.no_swap = "too little memory"

    document = agent.tcp.get("/plan").json()

    assert document["generation"] == 7
    assert [layer["name"] for layer in document["layers"]] == ["critical"]
    assert (document["can_swap"], document["why_no_swap"]) == (False, "too little memory")


def test_a_node_without_a_plan_in_force_says_why(agent, view):
    view.in_force = None
    view.state = Status(Mode.SAFE_MODE, "requested", "by alice")

    response = agent.tcp.get("/plan")

    assert response.status_code == 404
    assert response.json()["error"] == "no plan is in force (safe_mode requested by alice)"


def test_config_says_why_there_is_none(agent, view):
    view.in_force = None
    view.state = Status(Mode.OBSERVE_ONLY, "no sched_ext")

    response = agent.tcp.get("/config")

    assert response.status_code == 404
    assert response.json()["error"] == "no configuration is in force (observe_only no sched_ext)"


def test_plugins_are_listed_with_their_state(agent):
    (plugin,) = agent.tcp.get("/plugins").json()["plugins"]

    assert plugin["name"] == "linter"
    assert plugin["hooks"] == ["temper_invariants"]
    assert plugin["state"] == "active"


def test_explain_tells_of_one_pod_of_all_and_not_of_strangers(agent):
    one = agent.tcp.get("/explain", params={"pod": "shop/web"})
    every = agent.tcp.get("/explain")
    stranger = agent.tcp.get("/explain", params={"pod": "no/body"})

    assert one.json() == {"pod": "shop/web", "tier": "critical"}
    assert set(every.json()["pods"]) == {"shop/web", "shop/batch"}
    assert stranger.status_code == 404
    assert stranger.json() == {"error": "no pod 'no/body' on this node"}


@pytest.mark.parametrize(("path", "plugin"), [("/wakes", "tracer"), ("/violations", "linter")])
def test_a_path_of_a_plugin_of_ours_that_is_not_installed_names_its_install_line(
    agent, path, plugin
):
    missing = agent.tcp.get(path)

    assert missing.status_code == 404
    assert missing.json()["error"] == (
        f"there is no {path} here; it is of the plugin {plugin!r}: "
        f"pip install 'temper-agent[{plugin}]'; /index lists what there is"
    )


def test_a_path_that_is_not_there_and_a_method_that_is_not_taken_say_so_in_json(agent):
    missing = agent.tcp.get("/nothing")
    wrong = agent.tcp.delete("/safe-mode")

    assert missing.status_code == 404
    assert missing.json() == {"error": "there is no /nothing here; /index lists what there is"}
    assert wrong.status_code == 405
    assert wrong.json()["error"] == "/safe-mode does not take DELETE; allowed are: GET, HEAD, PUT"
    assert "PUT" in wrong.headers["allow"]


def test_a_trailing_slash_is_not_redirected(agent):
    response = agent.tcp.get("/metrics/", headers={"host": "elsewhere.example"})

    assert response.status_code == 404


def test_head_answers_without_a_body(agent):
    response = agent.tcp.head("/observe")

    assert response.status_code == 200
    assert response.content == b""
    assert int(response.headers["content-length"]) > 0


def test_answers_are_neither_cached_nor_sniffed(agent):
    headers = agent.tcp.get("/observe").headers

    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["server"].startswith("temper/")


def test_the_index_lists_every_path(agent):
    listed = agent.tcp.get("/").text

    assert all(path in listed for path in agent.tcp.get("/openapi.json").json()["paths"])
    assert agent.tcp.get("/index").text == listed


def test_checks_are_told_within_bounds_and_with_their_plugins(agent, view):
    view.checked = [
        ("shop", Check("db", CheckState.FAILED, "no answer\nfor 5 s", "start it")),
        ("odd", Check(7, "nonsense", "x" * 9999, None)),
    ]

    checks = agent.tcp.get("/checks").json()["checks"]

    assert checks == [
        {
            "plugin": "shop",
            "name": "db",
            "state": "failed",
            "detail": "no answer for 5 s",
            "remedy": "start it",
        },
        {"plugin": "odd", "name": "", "state": "unknown", "detail": "x" * 500, "remedy": ""},
    ]


def test_invariants_are_listed_with_their_reason_and_their_plugin(agent, view):
    view.promised = [
        ("shop", Invariant("slow_checkout", lambda _: (), "customers\nleave", Severity.ERROR)),
        ("odd", Invariant("odd", lambda _: (), None)),
    ]

    assert agent.tcp.get("/invariants").json()["invariants"] == [
        {"plugin": "shop", "name": "slow_checkout", "severity": "error", "why": "customers leave"},
        {"plugin": "odd", "name": "odd", "severity": "warning", "why": ""},
    ]
