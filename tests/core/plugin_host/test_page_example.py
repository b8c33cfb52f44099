"""The page in docs/writing-a-plugin.md works, and the agent's security headers let it."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from temper_core import Endpoint, Request
from temper_core.records.snapshots import PodSample
from temper_core.records.tiers import Tier
from temper_core.server.answers import respond
from temper_core.testing import make_snapshot

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def answers(host):
    """Return the replies of the example by their paths."""
    text = (DOCS / "writing-a-plugin.md").read_text()
    (code,) = re.findall(r"^## A page\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    module = ModuleType("temper_plugin_acme")
    exec(compile(code, "writing-a-plugin.md", "exec"), module.__dict__)
    host.add(module, "acme")
    pod = PodSample("shop", "web", "uid", Tier.NORMAL, 1, 0.5, run_delay=0.25)
    request = Request(snapshot=make_snapshot(pods=(pod,)))
    endpoints = [found.record for found in host.gather("temper_endpoints", Endpoint)]
    return {each.path: respond(each, request, "acme") for each in endpoints}


def test_the_page_its_script_and_its_data_are_served(answers):
    page, script, pods = (answers[path] for path in ("/acme/", "/acme/acme.js", "/acme/pods"))

    assert {page.status, script.status, pods.status} == {200}
    assert dict(page.head)["content-type"].startswith("text/html")
    assert dict(script.head)["content-type"].startswith("text/javascript")
    assert pods.content == b'{"shop/web": 0.25}\n'


def test_nothing_is_written_into_the_page_that_its_headers_forbid(answers):
    page = answers["/acme/"]

    assert "default-src 'self'" in dict(page.head)["content-security-policy"]
    assert re.findall(rb"<script(?![^>]* src=)|<style| on[a-z]+=", page.content) == []
