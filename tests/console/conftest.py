from tests.core.cli.conftest import (  # noqa: F401 - pytest finds fixtures by name
    agent,
    lasting_agent,
    lasting_view,
    node,
    temper,
    view,
)
