"""Trials over HTTP, on real sockets."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROFILE = """
schema_version = 1
id = "tuned"
[[thread_groups]]
name = "rest"
"""
ASKED = {"profile": PROFILE, "pods": ["shop/web"], "seconds": 60}


def test_a_trial_is_begun_listed_and_released(agent):
    begun = agent.unix.post("/trials", json=ASKED)
    listed = agent.tcp.get("/trials").json()["trials"]
    released = agent.unix.delete(f"/trials/{begun.json()['id']}")

    assert begun.status_code == 201
    assert listed == [begun.json()]
    assert (listed[0]["profile"], listed[0]["pods"]) == ("tuned", ["shop/web"])
    assert listed[0]["owner"].startswith("socket")
    assert released.json() == {"released": begun.json()["id"]}
    assert agent.tcp.get("/trials").json() == {"trials": []}


def test_acting_needs_the_right_to(start, token_file, view):
    agent = start(token_file)

    refused = [agent.tcp.post("/trials", json=ASKED), agent.tcp.delete("/trials/1")]

    assert [answer.status_code for answer in refused] == [401, 401]
    assert view.book.states() == ()


def test_a_trial_that_is_not_there_is_not_found(agent):
    assert agent.unix.delete("/trials/7").status_code == 404


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pods": ["shop/gone"]}, "pods: 'shop/gone' is not on this node"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": "60"}, "seconds"),
        ({"pods": []}, "pods"),
        ({"pods": "shop/web"}, "pods"),
        ({"profile": "id ="}, "profile"),
        ({"profile": 'schema_version = 1\nid = "x"\nextends = "mysql"\n'}, "extends another"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(agent, view, changed, message):
    answer = agent.unix.post("/trials", json={**ASKED, **changed})

    assert answer.status_code == 400
    assert message in answer.json()["error"]
    assert view.book.states() == ()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=JSON | st.fixed_dictionaries({"profile": JSON, "pods": JSON, "seconds": JSON}))
def test_whatever_the_body_is_the_answer_is_one_line(agent, body):
    answer = agent.unix.post("/trials", json=body)

    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]
