"""Series of made-up nodes, and which alerts they are to raise after how many minutes."""

SERIES = {
    "mode": 'temper_mode{instance="%s",mode="%s"}',
    "build": 'temper_build_info{instance="%s",version="0.1.0"}',
    "safe": 'temper_safe_mode{instance="%s",reason="%s"}',
    "up": 'up{instance="%s",job="temper-agent"}',
    "node": 'kube_node_info{instance="10.0.0.9:8080",node="%s"}',
    "violation": 'temper_lint_violation{instance="%s",invariant="%s"}',
    "reloads": 'temper_reloads_total{instance="%s",cause="%s"}',
    "swaps": 'temper_swap_failures_total{instance="%s",kind="%s"}',
    "ejections": 'temper_ejections_total{instance="%s",kind="%s"}',
    "cost": 'temper_overhead_cpu_seconds_total{instance="%s",part="%s"}',
    "stretched": 'temper_observe_stretched{instance="%s"}',
    "period": 'temper_observe_period_seconds{instance="%s"}',
    "age": 'temper_pods_age_seconds{instance="%s"}',
    "look": 'temper_snapshot_age_seconds{instance="%s"}',
    "webhook": 'up{instance="%s",job="temper-webhook"}',
    "admissions": 'temper_overcommit_admissions_total{instance="%s",outcome="%s"}',
    "expiry": 'temper_overcommit_certificate_expiry_timestamp_seconds{instance="%s"}',
    "extender_expiry": 'temper_power_extender_certificate_expiry_timestamp_seconds{instance="%s"}',
    "page_expiry": 'temper_dashboard_certificate_expiry_timestamp_seconds{instance="%s"}',
    "placement": 'up{instance="%s",job="temper-placement"}',
    "watch": 'temper_placement_watch_up{instance="%s",resource="%s"}',
}
DAY_S = 86400


def of(name, *labels):
    return SERIES[name] % labels


def node(name, modes, *, build="1x3000", up="1x3000"):
    """Make the series of one agent; *modes* are the values of each mode that it is ever in."""
    told = {of("mode", name, mode): values for mode, values in modes.items()}
    return {**told, of("build", name): build, of("up", name): up}


ENFORCING = {"enforcing": "1x3000"}
HEALTHY = {
    **node("a", {"enforcing": "1x3000", "safe_mode": "0x3000", "observe_only": "0x3000"}),
    of("safe", "a", "requested"): "0x3000",
    of("safe", "a", "ejected"): "0x3000",
    of("violation", "a", "rt_hog"): "0x3000",
    of("reloads", "a", "start"): "1x3000",
    of("reloads", "a", "plan"): "0+0.15x3000",
    of("cost", "a", "observe_user"): "0+0.2x3000",
    of("stretched", "a"): "0x3000",
    of("period", "a"): "5x3000",
    of("age", "a"): "20x3000",
    of("look", "a"): "5x3000",
    of("webhook", "w"): "1x3000",
    of("admissions", "w", "lowered"): "0+60x3000",
    of("admissions", "w", "failed"): "0x3000",
    of("expiry", "w"): f"{89 * DAY_S}x3000",
    of("extender_expiry", "e"): f"{89 * DAY_S}x3000",
    of("page_expiry", "d"): f"{89 * DAY_S}x3000",
    of("placement", "p"): "1x3000",
    of("watch", "p", "nodes"): "1x3000",
    of("watch", "p", "pods"): "1x3000",
}

CASES = {
    "all is well": (HEALTHY, {5: "", 60: "", 200: ""}),
    "an agent is gone with its target": (
        node("a", {"enforcing": "1x20 stale"}, build="1x20 stale", up="1x20 stale"),
        {20: "", 25: "", 27: "TemperAgentDown", 381: ""},
    ),
    "an agent is gone, and its target stays": (
        node("a", {"enforcing": "1x20 stale"}, build="1x20 stale", up="1x20 0x600"),
        {25: "", 27: "TemperAgentDown", 420: "TemperAgentSilent"},
    ),
    "an agent was replaced": (
        node("a", {"enforcing": "1x20 stale _x3 1x30"}, build="1x20 stale _x3 1x30"),
        {27: "", 50: ""},
    ),
    "an agent is gone, and others are not": (
        {
            **node("a", {"enforcing": "1x20 stale"}, build="1x20 stale"),
            **node("b", ENFORCING),
        },
        {30: "TemperAgentDown"},
    ),
    "a node has left the cluster": (
        {
            **node("a", {"enforcing": "1x20 stale"}, build="1x20 stale", up="1x20 stale"),
            **node("b", ENFORCING),
            of("node", "a"): "1x20 stale",
            of("node", "b"): "1x3000",
        },
        {30: "", 60: ""},
    ),
    "kube-state-metrics is gone as well": (
        {
            **node("a", {"enforcing": "1x20 stale"}, build="1x20 stale", up="1x20 stale"),
            of("node", "a"): "1x20 stale",
            of("node", "b"): "1x20 stale",
        },
        {30: "TemperAgentDown"},
    ),
    "a node's agent that is gone is still a node": (
        {
            **node("a", {"enforcing": "1x20 stale"}, build="1x20 stale", up="1x20 stale"),
            of("node", "a"): "1x3000",
        },
        {30: "TemperAgentDown"},
    ),
    "an agent never answered": (
        {of("up", "a"): "0x60"},
        {14: "", 16: "TemperAgentSilent"},
    ),
    "a node enforced and now only observes": (
        node("a", {"enforcing": "1x20 0x100", "observe_only": "0x20 1x100"}),
        {35: "", 37: "TemperNotEnforcing"},
    ),
    "a node never did but observe": (
        node("a", {"enforcing": "0x200", "observe_only": "1x200"}),
        {100: ""},
    ),
    "a node's engine is loading for ever": (
        node("a", {"enforcing": "1x20 0x100", "reloading": "0x20 1x100"}),
        {37: "TemperNotEnforcing"},
    ),
    "a node reloads now and then": (
        node("a", {"enforcing": "1x20 0 0 1x20 0 1x50", "reloading": "0x20 1 1 0x20 1 0x50"}),
        {22: "", 45: "", 80: ""},
    ),
    "safe mode came by itself": (
        {
            **node("a", {"enforcing": "1x20 0x100", "safe_mode": "0x20 1x100"}),
            of("safe", "a", "crash_loop"): "0x20 1x100",
        },
        {25: "", 27: "TemperUnexpectedSafeMode", 60: "TemperUnexpectedSafeMode"},
    ),
    "safe mode was there from the start": (
        {**node("a", {"safe_mode": "1x100"}), of("safe", "a", "preflight"): "1x100"},
        {6: "TemperUnexpectedSafeMode"},
    ),
    "safe mode lasted for a back-off": (
        {**node("a", ENFORCING), of("safe", "a", "ejected"): "0x20 1x3 0x100"},
        {22: "", 30: ""},
    ),
    "safe mode was asked for": (
        {
            **node("a", {"enforcing": "1x20 0x3000", "safe_mode": "0x20 1x3000"}),
            of("safe", "a", "requested"): "0x20 1x3000",
        },
        {60: "", 1400: "", 1470: "TemperSafeModeForgotten"},
    ),
    "a promise is broken": (
        {**node("a", ENFORCING), of("violation", "a", "rt_hog"): "0x10 2x100"},
        {24: "", 27: "TemperLintPersistent"},
    ),
    "a promise was broken for a while": (
        {**node("a", ENFORCING), of("violation", "a", "rt_hog"): "0x10 2x10 0x100"},
        {15: "", 25: "", 60: ""},
    ),
    "the pods are old": (
        {**node("a", ENFORCING), of("age", "a"): "0x10 0+60x60"},
        {15: "", 20: "TemperPodsStale"},
    ),
    "looks at the node fail": (
        {**node("a", ENFORCING), of("look", "a"): "5x10 0+60x60"},
        {15: "", 22: "TemperObservationStale"},
    ),
    "looks at the node are seldom": (
        {**node("a", ENFORCING), of("look", "a"): "120x60"},
        {40: ""},
    ),
    "the API server is asked every half minute": (
        {**node("a", ENFORCING), of("age", "a"): "30x60"},
        {40: ""},
    ),
    "the engine is started all the time": (
        {
            **node("a", ENFORCING),
            of("reloads", "a", "plan"): "0+0.3x100",
            of("reloads", "a", "rollback"): "0+0.05x100",
        },
        {10: "", 70: "TemperReloadStorm"},
    ),
    "the engine is changed ten times an hour": (
        {**node("a", ENFORCING), of("reloads", "a", "plan"): "0+0.1666x300"},
        {70: "", 200: ""},
    ),
    "one change failed": (
        {**node("a", ENFORCING), of("swaps", "a", "config"): "_x10 1x100"},
        {15: "", 60: ""},
    ),
    "two changes failed, of kinds that were never seen": (
        {
            **node("a", ENFORCING),
            of("swaps", "a", "config"): "_x10 1x100",
            of("swaps", "a", "hung"): "_x15 1x100",
        },
        {12: "", 20: "TemperSwapsFailing", 100: ""},
    ),
    "changes failed again": (
        {**node("a", ENFORCING), of("swaps", "a", "config"): "1x100 2 3x20"},
        {90: "", 105: "TemperSwapsFailing"},
    ),
    "the engine was thrown out once": (
        {**node("a", ENFORCING), of("ejections", "a", "stall"): "_x10 1x100"},
        {15: "", 60: ""},
    ),
    "the engine was thrown out three times": (
        {**node("a", ENFORCING), of("ejections", "a", "stall"): "_x10 1 2 3x100"},
        {20: "TemperEngineEjected", 90: ""},
    ),
    "the agent takes a tenth of a core": (
        {
            **node("a", ENFORCING),
            of("cost", "a", "observe_user"): "0+3x100",
            of("cost", "a", "lint_user"): "0+3x100",
        },
        {20: "", 40: "TemperOverBudget"},
    ),
    "the agent was busy for a moment": (
        {**node("a", ENFORCING), of("cost", "a", "other_user"): "0x20 12 24 36x100"},
        {25: "", 60: ""},
    ),
    "looking is stretched": (
        {
            **node("a", ENFORCING),
            of("stretched", "a"): "0x10 1x200",
            of("period", "a"): "5x10 40x200",
        },
        {60: "", 75: "TemperObservationStretched"},
    ),
    "every webhook is gone": (
        {of("webhook", "w"): "1x10 stale", of("webhook", "v"): "1x10 0x60"},
        {15: "", 17: "TemperWebhookDown"},
    ),
    "one webhook of two is gone": (
        {of("webhook", "w"): "1x10 stale", of("webhook", "v"): "1x60"},
        {30: ""},
    ),
    "there never was a webhook": ({of("up", "a"): "1x60"}, {30: ""}),
    "admissions fail": (
        {
            of("webhook", "w"): "1x60",
            of("admissions", "w", "lowered"): "0+60x60",
            of("admissions", "w", "failed"): "0x10 0+6x50",
        },
        {12: "", 20: "TemperWebhookFailing"},
    ),
    "admissions are refused": (
        {
            of("webhook", "w"): "1x60",
            of("admissions", "w", "refused"): "0x10 0+6x50",
        },
        {12: "", 20: "TemperWebhookFailing"},
    ),
    "pods are left alone for reasons": (
        {
            of("webhook", "w"): "1x60",
            of("admissions", "w", "critical"): "0+60x60",
            of("admissions", "w", "guaranteed"): "0+60x60",
        },
        {30: ""},
    ),
    "a certificate is not renewed": (
        {of("webhook", "w"): "1x100", of("expiry", "w"): f"{13 * DAY_S}x100"},
        {59: "", 61: "TemperWebhookCertificateExpiring"},
    ),
    "a certificate is due to be renewed": (
        {of("webhook", "w"): "1x100", of("expiry", "w"): f"{29 * DAY_S}x100"},
        {61: ""},
    ),
    "the power extender's certificate is not renewed": (
        {
            of("extender_expiry", "e"): f"{13 * DAY_S}x100",
            of("page_expiry", "d"): f"{89 * DAY_S}x100",
        },
        {59: "", 61: "TemperServerCertificateExpiring"},
    ),
    "the page's certificate is not renewed": (
        {
            of("extender_expiry", "e"): f"{89 * DAY_S}x100",
            of("page_expiry", "d"): f"{13 * DAY_S}x100",
        },
        {59: "", 61: "TemperServerCertificateExpiring"},
    ),
    "every extender is gone": (
        {of("placement", "p"): "1x10 stale", of("placement", "q"): "1x10 0x60"},
        {15: "", 17: "TemperPlacementDown"},
    ),
    "one extender of two is gone": (
        {of("placement", "p"): "1x10 stale", of("placement", "q"): "1x60"},
        {30: ""},
    ),
    "an extender hears of pods no more": (
        {
            of("placement", "p"): "1x60",
            of("watch", "p", "nodes"): "1x60",
            of("watch", "p", "pods"): "1x10 0x50",
        },
        {25: "", 27: "TemperPlacementBlind"},
    ),
    "one extender of two hears of pods": (
        {of("watch", "p", "pods"): "0x60", of("watch", "q", "pods"): "1x60"},
        {30: ""},
    ),
}
