"""The forwarder where no broker is needed: what it does with a target that takes, refuses, or is away."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from infra.delivery.alert_topic import AlertTopic, DeadLetters
from infra.delivery.forwarder import Forwarder, StoppedError
from infra.delivery.metrics import forward_page
from infra.delivery.targets import load_delivery
from infra.delivery.transition import FIRING, Transition
from infra.ports import LOOPBACK, free_ports
from jobs.kafka_client import KafkaClient

POLICY = replace(load_delivery().policy, max_batch_alerts=8, first_wait_seconds=0.01, longest_wait_seconds=0.02)


class Target:
    """Takes Alertmanager's POSTs, refusing those that hold an alert called poison with `status`."""

    def __init__(self) -> None:
        self.posts: list[list[dict[str, Any]]] = []
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                alerts = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                target.posts.append(alerts)
                is_poisoned = any(alert["labels"]["alertname"] == "poison" for alert in alerts)
                self.send_response(400 if is_poisoned else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://{LOOPBACK}:{self.server.server_port}"


@pytest.fixture
def target() -> Iterator[Target]:
    started = Target()
    yield started
    started.server.shutdown()
    started.server.server_close()


def alert(name: str) -> Transition:
    return Transition(name, FIRING, {"alertname": name}, {}, 0, 0, 0, "urn:x")


Make = Callable[..., Forwarder]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes forwarders that read from a broker that is not there."""
    kafka = KafkaClient(f"{LOOPBACK}:{free_ports(1)[0]}", {"log_level": "0"})
    topics = []

    def made(url: str, **policy: Any) -> Forwarder:
        topic = AlertTopic(kafka, "alerts", "am")
        topics.append(topic)
        settings = load_delivery().with_addresses([url], [], None)
        return Forwarder(
            target=settings.targets[0],
            policy=replace(POLICY, **policy),
            topic=topic,
            dead_letters=DeadLetters(kafka),
            state_file=tmp_path / "am.json",
            stopping=threading.Event(),
            clock=lambda: 1_000_000,
        )

    yield made
    for topic in topics:
        topic.close()


def test_however_many_fire_news_comes_in_between(target: Target, make: Make) -> None:
    """A resend delay that is too short for what fires must not keep the topic from being read."""
    forwarder = make(target.url, resend_delay_seconds=0.001)
    for number in range(100):
        forwarder.firing.take(alert(str(number)), 0)
    forwarder.step()
    assert [len(post) for post in target.posts] == [8]
    forwarder.step()
    names = [one["labels"]["alertname"] for post in target.posts for one in post]
    assert names == [str(number) for number in range(16)], "longest due first"


def test_a_firing_alert_that_is_refused_later_is_found_and_posted_no_more(target: Target, make: Make) -> None:
    forwarder = make(target.url)
    for name in ("a", "b", "poison", "c"):
        forwarder.firing.take(alert(name), 0)
    forwarder.step()
    assert {one.labels["alertname"] for one in forwarder.firing} == {"a", "b", "c"}
    assert (forwarder.figures.resent, forwarder.figures.refused) == (3, 1)


def test_asked_to_stop_it_waits_for_no_target_that_is_away(make: Make) -> None:
    forwarder = make(f"http://{LOOPBACK}:{free_ports(1)[0]}", first_wait_seconds=600.0, longest_wait_seconds=600.0)
    forwarder.firing.take(alert("a"), 0)
    stopper = threading.Timer(0.2, forwarder.stopping.set)
    stopper.start()
    with pytest.raises(StoppedError):
        forwarder.step()
    assert forwarder.figures.failed_posts == 1
    page = forward_page([forwarder]).decode()
    assert 'slacktide_forward_failed_posts_total{target="alertmanager"} 1\n' in page
    assert 'slacktide_forward_firing{target="alertmanager"} 1\n' in page
