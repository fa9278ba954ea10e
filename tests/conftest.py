"""The real engines, started once a session on free ports, for the tests that need them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from infra.broker import Broker, BrokerSettings
from infra.flink_cluster import FlinkCluster, FlinkSettings
from infra.ports import free_ports

# No deadline: how long an example takes says nothing on a busy machine.
settings.register_profile("slacktide", deadline=None)
settings.load_profile("slacktide")

SASL_USERNAME, SASL_PASSWORD = "tester", "only-for-tests"


# Engine tests that need Kafka or Spark and no Flink cluster.
WITHOUT_FLINK = {"alerts_command", "audit_job", "broker", "forward", "reference_topic", "replay"}


class ByEngine(LoadScopeScheduling):
    """Gives all tests that start Flink to one worker, since they share it; then those without it to one; then files.

    xdist's own groups (`--dist loadgroup`) have no effect under pytest 9.2, whose node ids a plugin can't change.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if not file.startswith(("tests/engine/", "tests/end_to_end/")):
            return file
        return "kafka" if Path(file).stem.removeprefix("test_") in WITHOUT_FLINK else "flink"


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """What `-n 2` distributes by."""
    return ByEngine(config, log)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker with all topics: `.bootstrap_servers`, and `.sasl_bootstrap_servers` for user `tester`."""
    os.environ["SLACKTIDE_SASL_USERNAME"], os.environ["SLACKTIDE_SASL_PASSWORD"] = SASL_USERNAME, SASL_PASSWORD
    port, controller_port, sasl_port = free_ports(3)
    folder: Path = tmp_path_factory.mktemp("broker")
    started = Broker(folder, BrokerSettings(port, controller_port, sasl_port))
    try:
        started.start()
        started.create_topics()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkCluster]:
    """A real standalone Flink cluster of four slots; jobs run with our packages as the working tree has them."""
    rest_port, rpc_port = free_ports(2)
    started = FlinkCluster(tmp_path_factory.mktemp("flink"), FlinkSettings(rest_port, rpc_port))
    try:
        started.start()
        yield started
    finally:
        started.stop()
