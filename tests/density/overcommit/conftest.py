import pytest

from tests.density.overcommit.shop import Replica, Shop


@pytest.fixture
def shop(cluster, tmp_path):
    """A labelled namespace without a webhook at work yet."""
    shop = Shop(cluster, tmp_path)
    yield shop
    shop.close()


@pytest.fixture
def replica(shop):
    """Start a webhook for the shop; every one is ended."""
    started = []

    def start(*options, **given):
        started.append(Replica(shop, *options, **given))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="module")
def served(cluster, tmp_path_factory):
    """A labelled namespace with a webhook that the API server trusts; tests only make pods."""
    shop = Shop(cluster, tmp_path_factory.mktemp("served"))
    replica = Replica(shop)
    try:
        replica.until_ready()
        shop.until_it_lowers()
        shop.replica = replica
        yield shop
    finally:
        replica.stop()
        shop.close()
