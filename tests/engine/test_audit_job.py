"""The audit job on a real broker and real Delta tables: killed mid-stream, repeated, and fed what it must refuse."""

import base64
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import psutil
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from infra.broker import Broker
from infra.commands import sql
from infra.errors import StackError
from infra.paths import jars
from jobs.audit import main
from jobs.audit_batch import BatchWriter, Figures
from jobs.audit_session import open_session
from jobs.audit_tables import register, views
from schemas.alerts import AlertState
from schemas.delta_tables import BATCHES, BOOKS, QUARANTINE, TOPIC_TABLES, VERDICTS
from schemas.incidents import IncidentEvent
from schemas.verdicts import Verdict
from tests import audit_records as records
from tests.conftest import SASL_PASSWORD

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

PREFIX = "audit-test-"
GOLDEN = Path(__file__).parent.parent / "golden" / "sql"
N_VERDICTS, N_LETTERS, N_MUTATED = 120, 40, 150
GOLDEN_LINES = 12
# Two orders of magnitude above what it takes: a busy machine must not look like a fault.
LONGEST_WAIT_SECONDS = 600.0


@dataclass
class Sent:
    """What was committed to the topics: how much of each, and by place the value and (for a bad one) its reason."""

    counts: Counter[str] = field(default_factory=Counter)
    values: dict[tuple[str, int, int], bytes | None] = field(default_factory=dict)
    reasons: dict[tuple[str, int, int], str] = field(default_factory=dict)


@dataclass
class Audited:
    """The warehouse after the job was killed once and run to the end twice."""

    spark: SparkSession
    warehouse: Path
    argv: list[str]
    sent: Sent
    killed_after: dict[str, Any]

    def rows(self, query: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.sql(query).collect()]


class Sender:
    """A transactional producer that remembers where each committed record went."""

    def __init__(self, bootstrap_servers: str, sent: Sent) -> None:
        self.sent = sent
        self.producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "audit-test"})
        self.producer.init_transactions(60)

    def send(self, topic: str, value: bytes | None, reason: str | None = None) -> None:
        def delivered(error: Any, message: Any) -> None:
            assert error is None
            place = (message.topic(), message.partition(), message.offset())
            self.sent.values[place] = value
            self.sent.counts[topic] += 1
            if reason is not None:
                self.sent.reasons[place] = reason

        # Same beginning, same id, same partition: which of two contradicting records is the first is then no chance.
        self.producer.produce(PREFIX + topic, value, key=(value or b"")[:60], on_delivery=delivered)


def known_good(sender: Sender) -> None:
    """The records that the golden answers are about."""
    for number in range(N_VERDICTS):
        sender.send("verdicts", records.verdict(number).to_json())
    sender.send("verdicts", records.unknown_verdict(N_VERDICTS).to_json())
    other = records.verdict(N_VERDICTS + 1, monitor="search", model_card_digest=records.UNKNOWN_CARD_DIGEST)
    sender.send("verdicts", other.to_json())
    for number in range(3):
        sender.send("alerts", records.alert(number, AlertState.FIRING))
    sender.send("alerts", records.alert(0, AlertState.RESOLVED))
    sender.send("alerts", records.alert(3, AlertState.SUPPRESSED))
    sender.send("alerts", records.alert(3, AlertState.RESOLVED))
    for number, event in enumerate((IncidentEvent.OPENED, IncidentEvent.UPDATED, IncidentEvent.RESOLVED), 1):
        sender.send("incidents", records.incident(0, event, number))
    sender.send("incidents", records.incident(1, IncidentEvent.OPENED, 1))
    sender.send("decisions", records.decision(0))
    for label in records.labels():
        sender.send("feedback", label)
    for number in range(N_LETTERS):
        sender.send("scores", records.score(number).to_json())
        sender.send("dead_letters", records.dead_letter(number))
        sender.send("books", records.book(number))
        sender.send("books", records.book(number, kind="requests", count=1))
        sender.send("books", records.book(number, kind="dead", count=1))
        sender.send("books", records.book(number, kind="waiting", count=(-1) ** number))


@pytest.fixture(scope="module")
def sent(broker: Broker) -> Sent:
    """Good, repeated, contradictory, bad and aborted records on topics of our own."""
    broker.create_topics(prefix=PREFIX)
    found = Sent()
    sender = Sender(broker.bootstrap_servers, found)
    sender.producer.begin_transaction()
    known_good(sender)
    for number in range(0, N_VERDICTS, 5):  # a job that was restarted writes the same bytes again
        sender.send("verdicts", records.verdict(number).to_json())
    sender.send("alerts", records.alert(0, AlertState.FIRING))
    sender.send("incidents", records.incident(1, IncidentEvent.OPENED, 1))
    sender.send("dead_letters", records.dead_letter(1))
    clash = "verdict_id: this id is already there with other content"
    sender.send("verdicts", records.verdict(7, statistic=0.03).to_json(), clash)
    sender.producer.commit_transaction(60)

    aborted = Sender(broker.bootstrap_servers, Sent())
    aborted.producer.begin_transaction()
    for number in range(500, 520):
        aborted.send("verdicts", records.verdict(number).to_json())
    aborted.producer.flush(60)
    aborted.producer.abort_transaction(60)

    sender = Sender(broker.bootstrap_servers, found)
    sender.producer.begin_transaction()
    for bad in records.bad_records():
        sender.send(bad.topic, bad.value, bad.reason)
    sender.producer.commit_transaction(60)
    return found


@pytest.fixture(scope="module")
def audited(broker: Broker, sent: Sent, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """Kill the driver in mid-stream, then run the job to its end, then once more; all of it reads by SASL."""
    folder = tmp_path_factory.mktemp("audit")
    warehouse = folder / "warehouse"
    argv = ["--bootstrap-servers", broker.sasl_bootstrap_servers, "--kafka-config", str(_kafka_config(folder))]
    argv += ["--topic-prefix", PREFIX]
    argv += ["--warehouse", str(warehouse), "--jars", str(jars("spark")[0].parent), "--model-card", str(records.CARD)]
    argv += ["--status-file", str(folder / "status.json")]
    killed_after = _kill_mid_stream(argv, folder)
    before = signal.getsignal(signal.SIGTERM)
    main([*argv, "--once"])
    main([*argv, "--once"])
    signal.signal(signal.SIGTERM, before)
    spark = open_session("test")
    register(spark, str(warehouse))
    yield Audited(spark, warehouse, argv, sent, killed_after)
    spark.stop()


def _kafka_config(folder: Path) -> Path:
    file = folder / "kafka.yaml"
    file.write_text(
        "security.protocol: SASL_PLAINTEXT\nsasl.mechanism: PLAIN\n"
        "sasl.username: ${SLACKTIDE_SASL_USERNAME}\nsasl.password: ${SLACKTIDE_SASL_PASSWORD}\n"
    )
    return file


def _kill_mid_stream(argv: list[str], folder: Path) -> dict[str, Any]:
    """Start the driver with small batches, and end Python and JVM by force once rows are being written."""
    status_file, log = folder / "status.json", folder / "driver.log"
    command = [sys.executable, "-m", "jobs.audit", *argv, "--trigger-seconds", "0.1", "--max-records-per-batch", "60"]
    with log.open("wb") as output:
        driver = subprocess.Popen(command, stdout=output, stderr=output)
    family = []
    try:
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        status: dict[str, Any] = {}
        while not any(totals["read"] for totals in status.get("topics", {}).values()):
            assert driver.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
            status = orjson.loads(status_file.read_bytes()) if status_file.exists() else {}
    finally:
        family = [psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)]
        for process in family:
            process.kill()
        driver.wait()
        psutil.wait_procs(family, timeout=10)
    return status


def test_the_kill_was_in_mid_stream(audited: Audited) -> None:
    read = sum(totals["read"] for totals in audited.killed_after["topics"].values())
    assert 0 < read < sum(audited.sent.counts.values())
    checkpoints = audited.rows("SELECT DISTINCT checkpoint_id FROM batches")
    assert len(checkpoints) == 1, "the second run went on from the first one's checkpoint"


def test_each_id_is_in_its_table_once_and_aborted_records_are_not(audited: Audited) -> None:
    expected = {records.verdict(n).verdict_id for n in range(N_VERDICTS)}
    expected |= {records.unknown_verdict(N_VERDICTS).verdict_id}
    expected |= {records.verdict(N_VERDICTS + 1, monitor="search").verdict_id}
    assert Counter(row["verdict_id"] for row in audited.rows("SELECT verdict_id FROM verdicts")) == Counter(expected)
    for table in TOPIC_TABLES:
        twice = audited.rows(f"SELECT {table.key} FROM {table.name} GROUP BY {table.key} HAVING count(*) > 1")
        assert not twice
    assert audited.rows("SELECT count(*) AS n FROM dead_letters")[0]["n"] == N_LETTERS
    assert audited.rows("SELECT count(*) AS n FROM alerts")[0]["n"] == 6


def test_a_row_says_what_its_record_said(audited: Audited) -> None:
    wanted: Verdict = records.verdict(10)
    query = f"SELECT *, unix_millis(window_end) AS end_ms FROM verdicts WHERE verdict_id = '{wanted.verdict_id}'"
    (row,) = audited.rows(query)
    for name in ("monitor", "feature", "series", "statistic", "p_value", "log10_p_value", "drifted", "n_infinite"):
        assert row[name] == getattr(wanted, name)
    assert row["end_ms"] == wanted.window_end_ms
    assert orjson.loads(row["evidence"]) == wanted.evidence
    place = (row["kafka_topic"], row["kafka_partition"], row["kafka_offset"])
    assert audited.sent.values[place] == wanted.to_json()


def test_bad_records_are_in_quarantine_whole_and_with_their_reason(audited: Audited) -> None:
    rows = {(r["kafka_topic"], r["kafka_partition"], r["kafka_offset"]): r for r in audited.rows("TABLE quarantine")}
    assert set(rows) == set(audited.sent.reasons)
    for place, reason in audited.sent.reasons.items():
        row, value = rows[place], audited.sent.values[place]
        assert row["reason"].startswith(reason), (row["reason"], value)
        assert row["length"] == len(value or b"")
        if row["raw_encoding"] == "masked":
            assert place[0] in (PREFIX + "dead_letters", PREFIX + "feedback")
        else:
            raw = row["raw"]
            decoded = (
                base64.b64decode(raw) if row["raw_encoding"] == "base64" else None if raw is None else raw.encode()
            )
            assert decoded == value


def test_the_audit_jobs_own_books_balance(audited: Audited) -> None:
    for row in audited.rows("TABLE audit_balance"):
        assert row["records_read"] == audited.sent.counts[row["kafka_topic"].removeprefix(PREFIX)]
        assert row["rows_inserted"] == row["rows_in_table"]
        assert row["rows_quarantined"] == row["rows_in_quarantine"]
        assert row["rows_missing"] == 0
    status = orjson.loads(Path(audited.argv[-1]).read_bytes())
    assert status["state"] == "stopped"
    assert {topic.removeprefix(PREFIX): t["read"] for topic, t in status["topics"].items()} == audited.sent.counts
    assert status["topics"][PREFIX + "verdicts"]["quarantined"] == sum(
        place[0] == PREFIX + "verdicts" for place in audited.sent.reasons
    )


def test_no_file_of_the_warehouse_holds_a_dead_letters_bytes(audited: Audited) -> None:
    words = [records.SECRET[at : at + 12] for at in range(len(records.SECRET) - 12)]
    encoded = base64.b64encode(records.SECRET)
    forbidden = [*words, *(encoded[at : at + 12] for at in range(len(encoded) - 12))]
    searched = 0
    for path in (path for path in audited.warehouse.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += repr(pq.read_table(path, partitioning=None).to_pydict()).encode()
        assert not any(word in content for word in forbidden), path
        searched += 1
    assert searched > 50
    assert audited.rows("SELECT has_note, count(*) AS n FROM feedback GROUP BY has_note ORDER BY has_note") == [
        {"has_note": False, "n": 2},
        {"has_note": True, "n": 3},
    ]
    shown = audited.rows("SELECT DISTINCT masked_prefix, length, sha256 FROM dead_letters")
    assert [row["masked_prefix"] for row in shown] == ["aaaaa aaaaaaa, aaaaa@aaaaaaa.aaa, aaaa 0000 0000"]


def test_kafka_was_read_by_sasl_and_its_password_is_nowhere(audited: Audited, broker: Broker) -> None:
    """That listener takes no other client. Log, status, checkpoint and tables are looked through."""
    assert audited.argv[1] == broker.sasl_bootstrap_servers
    files = [path for path in audited.warehouse.parent.rglob("*") if path.is_file()]
    assert {"driver.log", "status.json", "metadata"} <= {path.name for path in files}
    assert not [path for path in files if SASL_PASSWORD.encode() in path.read_bytes()]


def test_a_run_with_nothing_new_commits_nothing(audited: Audited) -> None:
    versions = {table.name: _version(audited, table.name) for table in (*TOPIC_TABLES, QUARANTINE, BATCHES)}
    main([*audited.argv, "--once"])
    assert versions == {name: _version(audited, name) for name in versions}


def _version(audited: Audited, name: str) -> int:
    return int(audited.rows(f"DESCRIBE HISTORY {name}")[0]["version"])


def test_history_change_feed_and_constraints(audited: Audited) -> None:
    history = audited.rows("DESCRIBE HISTORY verdicts")
    merges = [row for row in history if row["operation"] == "MERGE"]
    inserted = sum(int(row["operationMetrics"]["numTargetRowsInserted"]) for row in merges)
    assert inserted == N_VERDICTS + 2
    assert all(set(orjson.loads(row["userMetadata"])) == {"checkpoint_id", "batch_id"} for row in merges)
    changes = audited.rows("SELECT _change_type, count(*) AS n FROM table_changes('verdicts', 0) GROUP BY _change_type")
    assert changes == [{"_change_type": "insert", "n": N_VERDICTS + 2}]
    audited.spark.sql("SELECT * FROM verdicts WHERE status = 'ok' LIMIT 1").createOrReplaceTempView("one")
    impossible = ["2D AS p_value" if column.name == "p_value" else column.name for column in VERDICTS.columns]
    with pytest.raises((PySparkException, Py4JError), match="p_value_range"):
        audited.spark.sql(f"INSERT INTO verdicts SELECT {', '.join(impossible)} FROM one")
    with pytest.raises((PySparkException, Py4JError), match="APPEND_ONLY"):
        audited.spark.sql("DELETE FROM verdicts WHERE status = 'ok'")


def test_verdicts_join_the_card_they_were_judged_under(audited: Audited) -> None:
    rows = audited.rows("SELECT card_name, card_known, count(*) AS n FROM verdicts_with_card GROUP BY ALL ORDER BY n")
    assert rows == [
        {"card_name": None, "card_known": False, "n": 1},
        {"card_name": "azure-llm-conversation-2023", "card_known": True, "n": N_VERDICTS + 1},
    ]


def _answer(audited: Audited, view: str) -> str:
    """The view's rows as JSON lines, sorted, without what depends on when and where the records were sent."""
    changing = {"batch_key", "last_partition", "last_offset"}
    if view == "quarantine_by_reason":
        changing |= {"first_at", "last_at"}
    elif view == "verdicts_with_card":
        changing |= {"kafka_partition", "kafka_offset", "kafka_timestamp", "content_sha256"}
    frame = audited.spark.table(view)
    kept = ", ".join(name for name in frame.columns if name not in changing)
    lines = sorted(row.line for row in frame.selectExpr(f"to_json(struct({kept})) AS line").collect())
    return "".join(f"{line}\n" for line in lines[:GOLDEN_LINES])


@pytest.mark.parametrize("view", [view.name for view in views()])
def test_view_answers_as_committed(audited: Audited, view: str) -> None:
    assert _answer(audited, view) == (GOLDEN / f"{view}.jsonl").read_text()


def _sql(audited: Audited, *arguments: str, typed: str | None = None) -> Result:
    """Run `slacktide sql` in this process, on the session that is there."""
    folder = audited.warehouse.parent
    argv = ["--state-folder", str(folder / "state"), "--warehouse", str(audited.warehouse), *arguments]
    return CliRunner().invoke(sql.command, argv, input=typed)


def test_sql_prints_a_query_as_table_json_and_csv(audited: Audited) -> None:
    query = (
        "SELECT feature, first_drift, worst_series, worst_statistic > 1 AS odd, NULL AS nothing FROM drift_by_feature"
    )
    query += " WHERE feature = 'feature_0'"
    table = _sql(audited, "-e", query)
    assert table.exit_code == 0
    assert "2023-11-14 22:18:20" in table.stdout
    assert "1 row" in table.stdout
    lines = _sql(audited, "-e", query, "--format", "json").stdout
    assert orjson.loads(lines) == {
        "feature": "feature_0",
        "first_drift": "2023-11-14T22:18:20.000Z",
        "worst_series": {"tenant": "acme"},
        "odd": False,
        "nothing": None,
    }
    text = _sql(audited, "-e", query, "--format", "csv").stdout
    assert (
        text == "feature,first_drift,worst_series,odd,nothing\nfeature_0,2023-11-14 22:18:20,{tenant -> acme},false,\n"
    )


def test_sql_says_when_rows_are_left_out(audited: Audited) -> None:
    result = _sql(audited, "-e", "SELECT verdict_id FROM verdicts", "--format", "csv", "--max-rows", "5")
    assert len(result.stdout.splitlines()) == 6
    assert "more than 5 rows" in result.stderr


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT nope FROM verdicts", "`nope` cannot be resolved"),
        ("SELECT * FORM verdicts", "Syntax error at or near"),
        ("SELECT * FROM nowhere", "`nowhere` cannot be found"),
        ("SELECT 1 / 0", "Division by zero"),
        ("SELECT raise_error('stop')", "stop"),
        ("DELETE FROM verdicts", "only allow appends"),
    ],
)
def test_sql_says_plainly_what_is_wrong_with_a_query(audited: Audited, query: str, message: str) -> None:
    result = _sql(audited, "-e", query)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not re.search(r"\tat |java\.|org\.apache|Traceback|SQLSTATE|'Project", result.output), result.output


def test_sql_prompt_takes_statements_over_lines_and_words_without_semicolon(audited: Audited) -> None:
    typed = "help\nSELECT count(*) AS n\n  FROM open_alerts; SELECT nope;\nSELECT ';' AS semi;\nexit\nSELECT 'never';\n"
    result = _sql(audited, typed=typed)
    assert result.exit_code == 0
    for shown in ("drift_by_feature", "windows judged", "DESCRIBE name", "semi"):
        assert shown in result.stdout
    assert re.search(r"n\s+─+\s+2\s+1 row", result.stdout), result.stdout
    assert "`nope` cannot be resolved" in result.stderr
    assert "never" not in result.stdout


def test_sql_without_tables_says_how_to_get_some(audited: Audited, tmp_path: Path) -> None:
    result = CliRunner().invoke(sql.command, ["--state-folder", str(tmp_path), "-e", "SELECT 1"])
    assert isinstance(result.exception, StackError)
    assert "slacktide up" in str(result.exception)


def test_a_new_checkpoint_reads_all_again_and_adds_nothing(audited: Audited) -> None:
    """What a drift job replayed from scratch looks like, and that Delta's guard goes with the checkpoint."""
    before = _sizes(audited)
    main([*audited.argv, "--once", "--checkpoint", str(audited.warehouse.parent / "other")])
    assert _sizes(audited) == before
    query = """SELECT sum(rows_read) AS n, sum(rows_inserted + rows_quarantined) AS new
        FROM batches GROUP BY checkpoint_id ORDER BY new"""
    rows = audited.rows(query)
    assert [row["n"] for row in rows] == [sum(audited.sent.counts.values())] * 2
    assert rows[0]["new"] == 0


def _sizes(audited: Audited) -> dict[str, int]:
    tables = (*TOPIC_TABLES, QUARANTINE)
    return {table.name: audited.rows(f"SELECT count(*) AS n FROM {table.name}")[0]["n"] for table in tables}


def test_a_batch_repeated_after_a_crash_is_counted_alike_and_adds_nothing(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash is between the rows and the figures, where the most could go wrong."""
    topic, now = PREFIX + "verdicts", datetime.now(UTC)
    values = [records.verdict(2000 + number // 2).to_json() for number in range(20)] + [b"garbage"]
    rows = [(topic, 0, 10_000 + number, now, bytearray(value)) for number, value in enumerate(values)]
    for number, value in enumerate([records.book(1), b"garbage"]):
        rows.append((PREFIX + "books", 0, 10_000 + number, now, bytearray(value)))
    schema = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, value BINARY"
    batch = audited.spark.createDataFrame(rows, schema)
    writer = BatchWriter(str(audited.warehouse), {topic: VERDICTS, PREFIX + "books": BOOKS}, "a-checkpoint")
    with monkeypatch.context() as crash:
        crash.setattr(BatchWriter, "_write_figures", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            writer.write(batch, 5)
    expected = [
        Figures(PREFIX + "books", read=2, inserted=1, already_there=0, quarantined=1),
        Figures(topic, read=21, inserted=10, already_there=10, quarantined=1),
    ]
    assert writer.write(batch, 5) == expected
    assert writer.write(batch, 5) == expected
    query = "SELECT rows_inserted AS n FROM batches WHERE checkpoint_id = 'a-checkpoint' ORDER BY n"
    assert audited.rows(query) == [{"n": 1}, {"n": 10}]
    assert all(row["rows_missing"] == 0 for row in audited.rows("TABLE audit_balance"))


def test_random_damage_never_stops_the_stream_and_balances(audited: Audited, broker: Broker) -> None:
    before = {row["kafka_topic"]: row["records_read"] for row in audited.rows("TABLE audit_balance")}
    sender = Sender(broker.bootstrap_servers, Sent())
    sender.producer.begin_transaction()
    for topic, value in records.mutated(N_MUTATED, seed=7):
        sender.send(topic, value)
    sender.producer.commit_transaction(60)
    main([*audited.argv, "--once"])
    rows = audited.rows("TABLE audit_balance")
    assert sum(row["records_read"] - before[row["kafka_topic"]] for row in rows) == N_MUTATED
    assert all(row["rows_missing"] == 0 for row in rows)
    newest = "SELECT max(batch_id) FROM batches WHERE checkpoint_id <> 'a-checkpoint'"
    (figures,) = audited.rows(f"SELECT sum(rows_quarantined) AS bad FROM batches WHERE batch_id = ({newest})")
    assert figures["bad"] > N_MUTATED / 2


def test_a_topic_made_anew_stops_the_job_until_it_gets_a_new_checkpoint(audited: Audited, broker: Broker) -> None:
    topic = PREFIX + "books"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(60)
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while topic in admin.list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    broker.create_topics(prefix=PREFIX)
    sender = Sender(broker.bootstrap_servers, Sent())
    sender.producer.begin_transaction()
    sender.send("books", records.book(0))  # what stood at offset 0 before, too
    sender.producer.commit_transaction(60)
    before = audited.rows("SELECT count(*) AS n FROM books")[0]["n"]
    with pytest.raises(SystemExit, match="Start the job with a new --checkpoint"):
        main([*audited.argv, "--once"])
    assert orjson.loads(Path(audited.argv[-1]).read_bytes())["state"] == "failed"
    main([*audited.argv, "--once", "--checkpoint", str(audited.warehouse.parent / "third")])
    assert audited.rows("SELECT count(*) AS n FROM books")[0]["n"] == before + 1
