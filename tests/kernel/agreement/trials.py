"""``temper engine check --load`` on the real kernel: a good plan, and two that are none."""

import json

import kernel
from agents import DIRECTORY, PODLIST, temper
from observations import leftovers

OPEN = {"Open": {}}
TOO_LARGE = (
    {"Grouped": {"preempt": True, "util_range": [0.5, 0.8]}},
    {"Grouped": {"util_range": [0.5, 0.8]}},
    {"Open": {"preempt": True}},
    OPEN,
)
"""One layer of each of these kinds: more than the kernel's verifier is willing to look through."""


def judge_plans(engine, report):
    """Claim what is said of each plan, before anything was ever attached."""
    before = _left()
    code, said = _check(engine, _plan())
    loaded = "loaded into this kernel" in said
    report.claim("loads", (code, loaded) == (0, True), f"exit {code}: {said}")
    code, said = _check(engine, json.dumps([_layer("a", OPEN)]))
    refused = "refused  the engine, verifying it: Terminal spec" in said
    report.claim("refused", (code, refused) == (2, True), f"exit {code}: {said}")
    code, said = _check(engine, json.dumps(_too_large()))
    refused = "refused  the engine, being loaded with it" in said
    report.claim("too_large", (code, refused) == (2, True), f"exit {code}: {said}")
    told = f"{kernel.state()}, {kernel.attaches()} attach, left: {_left() - before or 'nothing'}"
    report.claim("nothing_left", told == "disabled, 0 attach, left: nothing", told)


def try_beside(engine, report):
    """Claim that a trial does not touch the engine that schedules."""
    before, engines = _left(), kernel.engines()
    code, said = _check(engine, _plan())
    told = (
        f"exit {code}, {kernel.state()}, {kernel.attaches()} attach, {_left() ^ before or 'same'}"
    )
    same = engines == kernel.engines()
    report.claim("beside", same and told == "exit 0, enabled, 1 attach, same", f"{told}: {said}")


def _check(engine, plan):
    file = DIRECTORY / "plan.json"
    file.write_text(plan)
    code, said, complaints = temper("engine", "check", file, "--binary", engine, "--load")
    return code, f"{said} {complaints}".strip()


def _plan():
    code, made, complaints = temper("plan", "--pods", PODLIST, "--steered", "--output", "engine")
    if code:
        raise RuntimeError(complaints)
    return made


def _left():
    """Return files, cgroups and engines, none of which a trial may leave."""
    files = (path for path in leftovers() if not path.startswith(str(DIRECTORY)))
    return {*files, *map(str, kernel.engines())}


def _too_large():
    layers = [_layer(f"kind-{number}", kind) for number, kind in enumerate(TOO_LARGE)]
    layers[-1]["matches"] = [[]]
    return layers


def _layer(name, kind):
    return {"name": name, "comment": "", "matches": [[{"CommPrefix": f"no-{name}"}]], "kind": kind}
