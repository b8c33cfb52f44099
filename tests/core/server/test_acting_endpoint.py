"""``GET /acting``."""

from tests.core.server.conftest import TOKEN


def test_an_agent_without_a_token_file_says_so(start):
    answer = start().tcp.get("/acting").json()

    why = "no [server] token_file is set"
    assert answer == {"has_token": False, "token_file": "", "why_not": why}


def test_a_token_file_that_comes_later_is_found(start, token_file):
    token_file.unlink()
    agent = start(token_file)

    before = agent.tcp.get("/acting").json()
    token_file.write_text(TOKEN)
    after = agent.tcp.get("/acting").json()

    assert before["has_token"] is False
    assert str(token_file) in before["why_not"]
    assert after == {"has_token": True, "token_file": str(token_file), "why_not": ""}


def test_no_part_of_a_token_is_in_the_answer(start, token_file):
    token_file.write_text("short-secret")
    agent = start(token_file)

    answer = agent.tcp.get("/acting")

    assert "16 to 4096 characters" in answer.json()["why_not"]
    assert "short-secret" not in answer.text
