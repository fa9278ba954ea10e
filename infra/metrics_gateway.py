"""One place for Prometheus to read the cluster's metrics from: http://127.0.0.1:PORT/metrics.

Flink's pulling reporter can only listen on all interfaces, which the embedded stack must not. So Flink's other reporter
pushes to this gateway, which lives in the supervisor and speaks the Pushgateway protocol: PUT /metrics/job/NAME. What a
process pushed is forgotten when it is not renewed, so a dead TaskManager has no metrics.
"""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from infra.ports import LOOPBACK

PUSH_SECONDS = 5
# Three pushes missed: the process is gone.
STALE_SECONDS = 3.5 * PUSH_SECONDS
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_BODY_BYTES = 16 * 1024 * 1024


class MetricsGateway:
    """Keeps the newest push of each process, O(size of a push) in memory; `serve` answers on loopback in a thread.

    What is not pushed again within `stale_seconds` is forgotten.
    """

    def __init__(self, stale_seconds: float = STALE_SECONDS) -> None:
        self._stale_seconds = stale_seconds
        self._pushed: dict[str, tuple[float, bytes]] = {}
        self._lock = threading.Lock()

    def put(self, name: str, body: bytes) -> None:
        """Take what process `name` pushed in place of what it pushed before."""
        with self._lock:
            self._pushed[name] = (time.monotonic(), body)

    def delete(self, name: str) -> None:
        """Forget a process."""
        with self._lock:
            self._pushed.pop(name, None)

    def text(self) -> bytes:
        """Return all that is fresh, in Prometheus' text format."""
        oldest = time.monotonic() - self._stale_seconds
        with self._lock:
            self._pushed = {name: push for name, push in self._pushed.items() if push[0] >= oldest}
            return b"".join(body if body.endswith(b"\n") else body + b"\n" for _, body in self._pushed.values())

    def serve(self, port: int) -> ThreadingHTTPServer:
        """Listen on `port` of loopback until the process ends. Raises OSError when it is taken."""
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(
                    200 if self.path == "/metrics" else 404, gateway.text() if self.path == "/metrics" else b""
                )

            def do_PUT(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if length > MAX_BODY_BYTES or not self.path.startswith("/metrics/job/"):
                    self._answer(413 if length > MAX_BODY_BYTES else 404, b"")
                    return
                gateway.put(self.path.removeprefix("/metrics/job/"), self.rfile.read(length))
                self._answer(202, b"")

            do_POST = do_PUT  # noqa: N815 - the base class dictates the name

            def do_DELETE(self) -> None:
                gateway.delete(self.path.removeprefix("/metrics/job/"))
                self._answer(202, b"")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: a push every few seconds is no news."""

        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return server
