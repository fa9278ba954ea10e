"""Ports: found free, and a taken one is named with its setting and its holder."""

import os
import socket

import pytest

from infra.ports import LOOPBACK, free_ports, holder, is_free, require_free
from jobs.kafka_client import ConfigurationError


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert all(is_free(port) for port in ports)


def test_a_taken_port_is_refused_with_setting_holder_and_remedy() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigurationError) as caught:
            require_free({"ports.kafka": port}, "stack.yaml")
    message = str(caught.value)
    assert "stack.yaml: ports.kafka" in message
    assert f"port {port} is taken by process {os.getpid()} (" in message
    assert "--port-offset" in message


def test_a_port_of_which_no_holder_is_visible() -> None:
    assert holder(free_ports(1)[0]) == "another process"


def test_a_connection_that_lingers_does_not_take_the_port() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection((LOOPBACK, port))
        accepted, _ = server.accept()
        accepted.close()  # the server's side closes first: its port stays in TIME_WAIT
        client.close()
    assert is_free(port)
