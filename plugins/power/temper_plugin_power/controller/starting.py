"""The work of ``temper power operator``, from options to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import prometheus_client
from attrs import evolve, frozen
from starlette.applications import Starlette

from temper_core import configure_logs, listen_on, parse_address
from temper_kube import kubeconfig
from temper_plugin_power.controller.operator import Operator
from temper_plugin_power.settings.power import power_settings
from temper_serving.observed import observed_routes
from temper_serving.running import serve

LISTEN = "--listen"


@frozen
class Start:
    """How the operator is started. None stands for the value of the settings or the kubeconfig."""

    listen: str | None
    namespace: str | None
    kubeconfig: Path | None
    settings: Path | None


def start(options: Start, log_level: str) -> None:
    """Run the operator until SIGTERM. Raise InputError or MachineError if it cannot start."""
    chosen = power_settings(options.settings)
    listening = parse_address(options.listen or chosen.operator.listen, LISTEN)
    configure_logs(log_level)
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    access = kubeconfig.find_access(str(options.kubeconfig or ""))
    access = evolve(access, namespace=options.namespace or access.namespace)
    operator = Operator(chosen, access)
    serve(application(operator), listen_on(listening, LISTEN), named="power_operator")


def application(operator: Operator) -> Starlette:
    """Return the probes and the metrics. The operator works while they are served."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        operator.start()
        try:
            yield
        finally:
            await asyncio.to_thread(operator.close)

    routes = observed_routes(lambda: operator.why_unready, operator.page)
    return Starlette(routes=routes, lifespan=lifespan)
