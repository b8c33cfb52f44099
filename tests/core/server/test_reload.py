"""``POST /profiles/reload``."""

from tests.core.server.conftest import TOKEN

PATH = "/profiles/reload"
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}


def test_the_answer_says_what_was_found(agent, view):
    answer = agent.unix.post(PATH)

    assert (answer.status_code, view.reloads) == (200, 1)
    failure = {"source": "a.toml", "profile": "a", "reason": "broken"}
    assert answer.json() == {"profiles": 3, "changed": True, "failures": [failure]}


def test_it_acts_so_it_needs_the_token_and_is_audited(start, token_file, view):
    agent = start(token_file)

    refused = agent.tcp.post(PATH)
    foreign = agent.tcp.post(PATH, headers={**AUTHORIZED, "sec-fetch-site": "cross-site"})
    done = agent.tcp.post(PATH, headers=AUTHORIZED)

    assert [each.status_code for each in (refused, foreign, done)] == [401, 403, 200]
    assert view.reloads == 1
    assert {line for line, _, _ in view.audited} == {f"POST {PATH}"}


def test_it_takes_no_body(agent, view):
    assert agent.unix.post(PATH, content=b"{}").status_code == 413
    assert view.reloads == 0
