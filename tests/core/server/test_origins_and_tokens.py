"""Who may act over TCP: no page of another origin, and whoever has one of the tokens."""

import os

import pytest
from structlog.testing import capture_logs

TOKEN = "0123456789abcdef-the-secret"
OTHER = "fedcba9876543210-another"
WISH = {"requested": True}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "ftp://agent.example"},
        {"origin": "http://agent.example.evil.example", "host": "agent.example"},
        {"origin": "http://agent.example@evil.example", "host": "agent.example"},
        {"origin": "http://agent.example:99999", "host": "agent.example"},
        {"origin": "http://[", "host": "agent.example"},
        {"origin": "", "host": "agent.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "nonsense"},
        {"sec-fetch-site": "cross-site", "origin": "http://agent.example", "host": "agent.example"},
    ],
)
def test_a_page_of_another_origin_may_not_act_even_with_the_token(start, view, token_file, headers):
    agent = start(token_file)

    response = agent.tcp.put("/safe-mode", json=WISH, headers={**bearer(TOKEN), **headers})

    assert response.status_code == 403
    assert response.json() == {"error": "a page of another origin may not act"}
    assert view.requests == {}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://agent.example:9100", "host": "agent.example:9100"},
        {"origin": "http://agent.example", "host": "agent.example:80"},
        {"origin": "https://agent.example", "host": "agent.example"},
        {"origin": "http://AGENT.example", "host": "agent.example."},
        {"origin": "http://[::1]:9100", "host": "[0:0::1]:9100"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_a_page_of_this_origin_and_what_is_no_browser_may_act_with_the_token(
    start, view, token_file, headers
):
    agent = start(token_file, hosts=("agent.example",))

    response = agent.tcp.put("/safe-mode", json=WISH, headers={**bearer(TOKEN), **headers})

    assert response.status_code == 200
    assert set(view.requests) == {"token"}


def test_reading_is_open_to_every_origin_and_the_local_socket_knows_none(start):
    agent = start()
    cross = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}

    assert agent.tcp.get("/observe", headers=cross).status_code == 200
    assert agent.unix.put("/safe-mode", json=WISH, headers=cross).status_code == 200


def test_each_of_several_tokens_acts_in_its_own_name(start, view, token_file):
    token_file.write_text(f"# of the shop\nops: {TOKEN}\n\nci:\t{OTHER} \nci: {OTHER}-2\n")
    agent = start(token_file)

    statuses = [
        agent.tcp.put("/safe-mode", json=WISH, headers=bearer(token)).status_code
        for token in (TOKEN, OTHER, f"{OTHER}-2", "ops", f"ops: {TOKEN}", TOKEN + OTHER)
    ]

    assert statuses == [200, 200, 200, 401, 401, 401]
    assert [who for _, who, _ in view.audited[:3]] == ["token ops", "token ci", "token ci"]


def test_a_single_token_has_no_name(start, view, token_file):
    start(token_file).tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN))

    assert view.audited == [("PUT /safe-mode", "token", "done")]


def test_a_comment_is_no_token_and_no_part_of_one(start, token_file):
    token_file.write_text(f"# ops: {OTHER}\n{TOKEN}\n")
    agent = start(token_file)

    statuses = [
        agent.tcp.put("/safe-mode", json=WISH, headers=bearer(token)).status_code
        for token in (TOKEN, f"# ops: {OTHER}", OTHER)
    ]

    assert statuses == [200, 401, 401]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"{TOKEN}\n{OTHER}\n", "has 2 lines, and none of them is 'name: token'"),
        (f"# ops: {TOKEN}\n", "must hold 16 to 4096 characters"),
        (f" # {TOKEN}\n\n", "must hold 16 to 4096 characters"),
        (f"ops: {TOKEN}\n{OTHER}\n", "some of its lines are 'name: token', so all of them must"),
        ("ops: short\n", "token 'ops': must hold 16 to 4096 characters"),
        (f"ops: {TOKEN}\nci: {'x' * 5000}\n", "token 'ci': must hold 16 to 4096 characters"),
        ("".join(f"t{n}: {'x' * 4000}\n" for n in range(20)), "is larger than 65536 bytes"),
    ],
)
def test_a_file_of_several_tokens_that_is_spoilt_lets_nobody_act(start, token_file, content, said):
    token_file.write_text(content)
    with capture_logs() as logs:
        agent = start(token_file)

    response = agent.tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN))

    assert response.status_code == 403
    assert said in response.json()["error"]
    assert TOKEN not in response.text + str(logs)
    assert OTHER not in response.text + str(logs)


def test_a_token_replaced_by_one_of_the_same_size_and_time_is_refused(start, token_file):
    agent = start(token_file)
    assert agent.tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN)).status_code == 200
    times = token_file.stat()

    token_file.write_text(f"{TOKEN[::-1]}\n")
    os.utime(token_file, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert agent.tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN)).status_code == 401
    assert agent.tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN[::-1])).status_code == 200
