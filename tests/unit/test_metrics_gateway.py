"""The metrics gateway: what Flink pushes, Prometheus reads, for as long as it is renewed."""

import urllib.error
import urllib.request

import pytest

from infra import metrics_gateway
from infra.metrics_gateway import STALE_SECONDS, MetricsGateway
from infra.ports import LOOPBACK, free_ports


@pytest.fixture
def url():
    (port,) = free_ports(1)
    server = MetricsGateway().serve(port)
    yield f"http://{LOOPBACK}:{port}"
    server.shutdown()
    server.server_close()


def call(method: str, url: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, method=method, data=body), timeout=5) as answer:
        return answer.read()


def test_the_newest_push_of_each_process_is_on_one_page(url: str) -> None:
    call("PUT", f"{url}/metrics/job/jobmanager", b"jobs 1\n")
    call("PUT", f"{url}/metrics/job/taskmanager", b"heap 1")
    call("POST", f"{url}/metrics/job/jobmanager", b"jobs 2\n")
    assert call("GET", f"{url}/metrics") == b"jobs 2\nheap 1\n"
    call("DELETE", f"{url}/metrics/job/taskmanager")
    assert call("GET", f"{url}/metrics") == b"jobs 2\n"


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("PUT", "/elsewhere")])
def test_other_places_are_not_found(url: str, method: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        call(method, url + path, b"x" if method == "PUT" else None)


def test_what_is_not_renewed_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(metrics_gateway.time, "monotonic", lambda: now[0])
    gateway = MetricsGateway()
    gateway.put("dead", b"a 1\n")
    now[0] = STALE_SECONDS - 1
    gateway.put("alive", b"b 1\n")
    assert gateway.text() == b"a 1\nb 1\n"
    now[0] = STALE_SECONDS + 1
    assert gateway.text() == b"b 1\n"
