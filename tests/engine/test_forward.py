"""`slacktide forward` from a real broker to a real Alertmanager, and to a webhook that fails before it takes."""

import hmac
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from infra.broker import Broker, BrokerSettings
from infra.delivery.webhook import signature
from infra.ports import LOOPBACK, free_ports
from schemas.alerts import Alert, AlertState, EvidenceWindow
from schemas.topics import ALERTS, DEAD_LETTERS, INCIDENTS, Topic
from tests.alertmanager import NEEDS_ALERTMANAGER, Alertmanager
from udfs.alerts.fingerprint import fingerprint

pytestmark = pytest.mark.engine
POLICY = "policy: {resend_delay_seconds: 1, first_wait_seconds: 0.05, longest_wait_seconds: 0.4, timeout_seconds: 5}\n"
N_WAITING = 300


def alert(number: int, state: AlertState = AlertState.FIRING, **labels: str) -> Alert:
    """A transition of alert `number`, that began a minute ago."""
    labels = {"alertname": "FeatureDrift", "monitor": "chat", "feature": "f", "severity": "page", **labels}
    labels |= {"number": str(number), "odd": 'a="b",{\n}\\ é'}
    now_ms = int(time.time() * 1000)
    return Alert(
        state=state,
        fingerprint=fingerprint(labels),
        labels=labels,
        annotations={"summary": f"drift {number}", "description": "drifted"},
        active_at_ms=now_ms - 90_000,
        starts_at_ms=now_ms - 60_000,
        ends_at_ms=now_ms - (59_000 if state is AlertState.FIRING else 0),  # it waited for long: endsAt is over
        updated_at_ms=now_ms - 60_000,
        generator_url="urn:slacktide:verdict:0",
        monitor="chat",
        feature="f",
        series={},
        model_card_digest="sha256:" + "c" * 64,
        evidence=(EvidenceWindow("a" * 32, now_ms, 0.2, 0.0, 500, 0.01, 0.05, None),),
    )


def send(broker: Broker, prefix: str, records: Sequence[Alert | bytes], topic: Topic = ALERTS) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for record in records:
        value, key = (record, b"") if isinstance(record, bytes) else (record.to_json(), record.fingerprint)
        producer.produce(prefix + topic.name, value, key=key)
    assert producer.flush(10) == 0


class Forward:
    """`slacktide forward` as a process of its own, which can die at any time."""

    def __init__(
        self,
        broker: Broker,
        prefix: str,
        targets: str,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        policy: str = POLICY,
    ) -> None:
        file = folder / "delivery.yaml"
        file.write_text(targets + policy)
        self._line = [sys.executable, "-m", "infra.cli", "forward", "--topic-prefix", prefix, "--targets", str(file)]
        self._line += ["--bootstrap-servers", broker.bootstrap_servers, "--state-folder", str(folder)]
        self.log, self._environment = folder / "forward.log", {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(self._line, stdout=out, stderr=out, env=self._environment)

    def end(self, by: int = signal.SIGTERM) -> int:
        self.process.send_signal(by)
        return self.process.wait(20)

    def wait_until(self, holds: Callable[[], bool], timeout_seconds: float = 30) -> None:
        deadline = time.monotonic() + timeout_seconds
        while not holds():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)


def committed(broker: Broker, prefix: str, target: str, topic: Topic = ALERTS) -> int:
    """The offset that the forwarder committed; below 0 while there is none."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"slacktide-forward-{target}"}
    consumer = Consumer(settings)
    (place,) = consumer.committed([TopicPartition(prefix + topic.name, 0)], 10)
    consumer.close()
    return int(place.offset)


def dead_letters(broker: Broker, prefix: str) -> list[dict[str, Any]]:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(prefix + DEAD_LETTERS.name, 0, 0)])
    found = []
    while (message := consumer.poll(10)) is not None and not message.error():
        found.append(orjson.loads(message.value()))
    consumer.close()
    return found


@NEEDS_ALERTMANAGER
def test_what_came_while_alertmanager_was_away_is_there_once_and_stays_while_it_fires(
    broker: Broker, tmp_path: Path
) -> None:
    prefix = "forward-am-"
    broker.create_topics([ALERTS, DEAD_LETTERS], prefix=prefix)
    alertmanager = Alertmanager(tmp_path)
    targets = f"targets: [{{name: am, kind: alertmanager, url: '{alertmanager.url}'}}]\n"
    forward = Forward(broker, prefix, targets, tmp_path)
    waiting = [alert(number) for number in range(N_WAITING)]
    poison = alert(-1, **{"not a label": "x"})
    over = [alert(1000), alert(1000, AlertState.RESOLVED)]
    again = [alert(0, AlertState.RESOLVED), alert(0)]
    try:
        forward.start()
        send(broker, prefix, [*waiting[:150], b"garbage", poison, *over, *waiting[150:], *again])
        forward.wait_until(lambda: "trying again until it does" in forward.log.read_text())
        assert committed(broker, prefix, "am") < 0, "nothing is committed that nobody took"
        alertmanager.start()
        names = {one.fingerprint for one in waiting}
        held = alertmanager.wait_for(names)
        assert len(held) == N_WAITING
        by_name = {one.fingerprint: one for one in waiting}
        assert all(found["labels"] == by_name[found["fingerprint"]].labels for found in held)
        n_records = N_WAITING + 6
        forward.wait_until(lambda: committed(broker, prefix, "am") == n_records)
        letters = {letter["offset"]: letter["reason"] for letter in dead_letters(broker, prefix)}
        assert letters == {150: "malformed_json", 151: "delivery_refused"}

        # endsAt is four resends ahead: five seconds later all fire only because they were posted again.
        time.sleep(5)
        assert len(alertmanager.wait_for(names)) == N_WAITING

        # Both die; what fires is made from the topic, and posted to one that has forgotten everything.
        forward.end(signal.SIGKILL)
        alertmanager.stop()
        alertmanager.start()
        assert alertmanager.alerts() == []
        forward.start()
        alertmanager.wait_for(names)

        # Ended in good order it keeps a state file, from which the next one goes on.
        assert forward.end() == 0
        kept = orjson.loads((tmp_path / "run" / "delivery" / f"{prefix}am.json").read_bytes())
        assert (kept["offsets"], len(kept["firing"])) == ({"0": n_records}, N_WAITING)
        send(broker, prefix, [alert(number, AlertState.RESOLVED) for number in range(N_WAITING - 1)])
        forward.start()
        alertmanager.wait_for({waiting[-1].fingerprint})
        assert forward.end() == 0
        assert len(dead_letters(broker, prefix)) == 2, forward.log.read_text()
    finally:
        forward.process.kill()
        alertmanager.stop()


class Hook:
    """A webhook's server: answers 503, then a redirect, then refuses alerts called poison, and takes all else."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.taken: list[dict[str, Any]] = []
        self.paged: list[bytes] = []
        self.failures = [503, 302, 500]
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.requests.append((dict(self.headers), body))
                status = hook.failures.pop(0) if hook.failures else 200
                alerts = orjson.loads(body)["alerts"]
                if status == 200 and any("poison" in one["labels"] for one in alerts):
                    status = 422
                if status == 200 and self.path == "/pager":
                    hook.paged.append(body)
                elif status == 200:
                    hook.taken.extend(alerts)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://{LOOPBACK}:{self.server.server_port}"


@pytest.fixture
def hook() -> Iterator[Hook]:
    started = Hook()
    yield started
    started.server.shutdown()
    started.server.server_close()


def test_a_webhook_gets_each_transition_once_in_order_and_signed(broker: Broker, hook: Hook, tmp_path: Path) -> None:
    prefix, secret = "forward-hook-", "only-for-tests"
    broker.create_topics([ALERTS, INCIDENTS, DEAD_LETTERS], prefix=prefix)
    sent = [alert(number % 20, AlertState.RESOLVED if number // 20 % 2 else AlertState.FIRING) for number in range(120)]
    signed = "kind: webhook, secret_from_environment: HOOK_SECRET"
    targets = f"targets: [{{name: hook, url: '{hook.url}/hook', {signed}}}, "
    targets += f"{{name: pager, url: '{hook.url}/pager', of: incidents, {signed}}}]\n"
    forward = Forward(broker, prefix, targets, tmp_path, environment={"HOOK_SECRET": secret})
    send(broker, prefix, [*sent[:60], alert(7, poison="x"), *sent[60:]])
    pages = [orjson.dumps({"notification_id": f"n{number}", "version": "4", "alerts": []}) for number in range(5)]
    send(broker, prefix, [*pages[:3], b"garbage", *pages[3:]], INCIDENTS)
    forward.start()
    try:
        forward.wait_until(lambda: committed(broker, prefix, "hook") == 121)
        forward.wait_until(lambda: committed(broker, prefix, "pager", INCIDENTS) == 6)
        assert forward.end() == 0
    finally:
        forward.process.kill()
    assert [(one["fingerprint"], one["status"], one["alert_id"]) for one in hook.taken] == [
        (one.fingerprint, one.state, one.alert_id) for one in sent
    ]
    for headers, body in hook.requests:
        expected = signature(body, secret, headers["X-Slacktide-Timestamp"])
        assert hmac.compare_digest(headers["X-Slacktide-Signature"], expected)
        assert abs(time.time() - int(headers["X-Slacktide-Timestamp"])) < 60
    assert hook.paged == pages, "one message an incident's notification, as it is"
    assert sorted((letter["reason"], letter["offset"], letter["job"]) for letter in dead_letters(broker, prefix)) == [
        ("delivery_refused", 60, "forward-hook"),
        ("malformed_json", 3, "forward-pager"),
    ]
    assert secret not in forward.log.read_text()


@pytest.mark.slow
@NEEDS_ALERTMANAGER
def test_a_storm_while_alertmanager_is_away_stays_on_kafka_and_then_arrives_whole(
    broker: Broker, tmp_path: Path
) -> None:
    """Ten thousand series at once. Reading ahead is bounded, so what waits costs Kafka's disk and not our memory."""
    prefix, count = "forward-storm-", 10_000
    broker.create_topics([ALERTS, DEAD_LETTERS], prefix=prefix)
    alertmanager = Alertmanager(tmp_path)
    targets = f"targets: [{{name: am, kind: alertmanager, url: '{alertmanager.url}'}}]\n"
    forward = Forward(broker, prefix, targets, tmp_path, policy=POLICY.replace("delay_seconds: 1", "delay_seconds: 20"))
    forward.start()
    try:
        send(broker, prefix, [alert(-1)])
        forward.wait_until(lambda: "trying again until it does" in forward.log.read_text())
        process = psutil.Process(forward.process.pid)
        before_mb = process.memory_info().rss / 2**20
        for _ in range(10):  # 10,000 series, ten transitions each: more than is fetched ahead
            send(broker, prefix, [alert(number) for number in range(count)])
        time.sleep(5)
        waiting_mb = process.memory_info().rss / 2**20
        began = time.monotonic()
        alertmanager.start()
        forward.wait_until(lambda: committed(broker, prefix, "am") == 10 * count + 1, timeout_seconds=200)
        print(f"memory {before_mb:.0f} -> {waiting_mb:.0f} -> {process.memory_info().rss / 2**20:.0f} MB;")
        print(f"{10 * count} transitions in {time.monotonic() - began:.1f} s")
        assert waiting_mb - before_mb < 32
        assert len(alertmanager.alerts()) == count + 1
        assert forward.end() == 0
    finally:
        forward.process.kill()
        alertmanager.stop()


@pytest.mark.slow
def test_a_broker_that_dies_and_comes_back_is_read_on(hook: Hook, tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker", BrokerSettings(*free_ports(2)))
    hook.failures.clear()
    forward = Forward(broker, "", f"targets: [{{name: hook, kind: webhook, url: '{hook.url}/hook'}}]\n", tmp_path)
    sent = [alert(number) for number in range(4)]
    try:
        forward.start()  # before there is a broker
        broker.start()
        broker.create_topics([ALERTS, DEAD_LETTERS])
        forward.end()
        forward.start()
        send(broker, "", sent[:2])
        forward.wait_until(lambda: len(hook.taken) == 2)
        process = broker.service.process()
        assert process is not None
        process.kill()
        process.wait(10)
        time.sleep(2)
        broker.start()
        send(broker, "", sent[2:])
        forward.wait_until(lambda: len(hook.taken) == 4, timeout_seconds=60)
        forward.wait_until(lambda: committed(broker, "", "hook") == 4)
        assert [one["fingerprint"] for one in hook.taken] == [one.fingerprint for one in sent]
        assert forward.end() == 0
    finally:
        forward.process.kill()
        broker.stop()
