from tests.dashboard.fleet.made_fleet import client, entered, made

__all__ = ["client", "entered", "made"]
