"""One POST against a real server: what its answer means; and how long the next try waits."""

import random
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from infra.delivery.back_off import BackOff
from infra.delivery.http_post import Answer, Outcome, post_json
from infra.ports import LOOPBACK, free_ports


class Server:
    """Answers with `status` and `headers`, and keeps what was asked."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 200, {}, b""
        self.asked: list[tuple[str, str, bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.asked.append((self.command, self.path, sent))
                self.send_response(server.status)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(server.body)))
                self.end_headers()
                self.wfile.write(server.body)

            do_GET = do_POST  # noqa: N815 - the base class dictates the name

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def post(self) -> Answer:
        return post_json(f"http://{LOOPBACK}:{self.http.server_port}/x", b"[1]", headers={}, timeout_seconds=5)


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.http.shutdown()
    started.http.server_close()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.TAKEN),
        (202, Outcome.TAKEN),
        (400, Outcome.REFUSED),
        (413, Outcome.REFUSED),
        (422, Outcome.REFUSED),
        (401, Outcome.RETRY),
        (404, Outcome.RETRY),
        (429, Outcome.RETRY),
        (500, Outcome.RETRY),
        (503, Outcome.RETRY),
    ],
)
def test_what_a_status_means(server: Server, status: int, outcome: Outcome) -> None:
    server.status = status
    answer = server.post()
    assert (answer.outcome, answer.status) == (outcome, status)
    assert server.asked == [("POST", "/x", b"[1]")]


def test_a_redirect_is_no_delivery(server: Server) -> None:
    server.status, server.headers = 302, {"Location": "/login"}
    assert server.post().outcome is Outcome.RETRY
    assert len(server.asked) == 1, "followed, it would be a GET without the alerts"


def test_a_refusal_is_quoted_in_one_line_and_a_wait_is_heard(server: Server) -> None:
    server.status, server.headers, server.body = 429, {"Retry-After": "7"}, b"slow\x1b[2J\ndown"
    answer = server.post()
    assert answer.detail == "HTTP 429: slow [2J down"
    assert answer.retry_after_seconds == 7.0


def test_nobody_there_is_to_be_tried_again() -> None:
    answer = post_json(f"http://{LOOPBACK}:{free_ports(1)[0]}", b"", headers={}, timeout_seconds=5)
    assert (answer.outcome, answer.status) == (Outcome.RETRY, None)
    assert "ConnectionRefusedError" in answer.detail


def test_one_that_never_answers_is_given_up() -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        began = time.monotonic()
        url = f"http://{LOOPBACK}:{silent.getsockname()[1]}"
        assert post_json(url, b"", headers={}, timeout_seconds=0.2).outcome is Outcome.RETRY
        assert time.monotonic() - began < 5


def test_what_is_no_http_is_to_be_tried_again() -> None:
    with socket.create_server((LOOPBACK, 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            connection.recv(1000)
            connection.sendall(b"220 mail.example ESMTP\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://{LOOPBACK}:{other.getsockname()[1]}"
        assert post_json(url, b"", headers={}, timeout_seconds=5).outcome is Outcome.RETRY
        thread.join()


@given(st.integers(1, 10_000), st.integers())
@hypothesis_settings(max_examples=60)
def test_waits_double_within_bounds_and_are_never_zero(failures: int, seed: int) -> None:
    wait = BackOff(0.5, 30.0).delay_seconds(failures, random.Random(seed))
    whole = min(30.0, 0.5 * 2.0 ** min(failures - 1, 60))
    assert whole / 2 <= wait <= whole


def test_a_server_is_trusted_by_its_own_authority_alone(server: Server, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    line += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*line, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    url = f"https://{LOOPBACK}:{server.http.server_port}"
    refused = post_json(url, b"[1]", headers={}, timeout_seconds=5)
    assert (refused.outcome, server.asked) == (Outcome.RETRY, [])
    assert "certificate" in refused.detail.lower()
    taken = post_json(url, b"[1]", headers={"Authorization": "x"}, timeout_seconds=5, ca_file=str(certificate))
    assert taken.outcome is Outcome.TAKEN
