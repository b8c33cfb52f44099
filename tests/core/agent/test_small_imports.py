"""What an agent with every plugin here does not import until something asks for it."""

import re

from tests.core.agent.running_agent import RunningAgent

ON_DEMAND = {"hashlib", "hmac", "html", "mimetypes", "numpy", "secrets", "temper_core.console"}
"""Each takes memory in the agent of every node: together 1.5 MB, without numpy."""
IMPORTED = re.compile(r"^import time:.*\| +(\S+)$", re.MULTILINE)


def test_an_agent_imports_what_few_requests_need_on_demand(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    agent = RunningAgent(tmp_path)
    try:
        agent.wait_for(lambda: "temper_lint" in agent.get("/metrics").text, "metrics of a plugin")
    finally:
        agent.stop()

    imported = set(IMPORTED.findall((tmp_path / "log").read_text()))
    assert {"temper_plugin_linter.standing", "temper_plugin_tracer.capture.instrument"} <= imported
    assert not imported & ON_DEMAND
