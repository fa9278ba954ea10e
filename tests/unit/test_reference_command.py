"""`slacktide reference`: values of files and of the trace become a profile; what can't be built is refused plainly."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from infra.cli import main
from infra.commands.reference import command
from infra.reference_sources.replayed_trace import columns_of_trace
from infra.reference_sources.wanted import wanted
from infra.replay import Position, ReplayPlan
from infra.replay.resolve import resolve
from infra.replay.served import served_blocks
from infra.replay.trace import read_trace
from udfs.references.embedding_reference import EmbeddingReference
from udfs.references.profile import ReferenceProfile


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def built(result: Result) -> ReferenceProfile:
    assert result.exit_code == 0, result.output
    return ReferenceProfile.load(result.stdout.splitlines()[-1])


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run through the real entry point, which turns errors into a sentence and exit status 2."""
    with pytest.raises(SystemExit) as ended:
        main(["reference", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    file = tmp_path / "requests.csv"
    file.write_text(
        "input_tokens,model,tenant,is_streaming,attributes.temperature,queue_seconds\n"
        "1,a,acme,true,0.5,\n2,a,acme,false,,NaN\n3,b,globex,true,0.7,Infinity\n"
    )
    return file


def test_csv(csv: Path, tmp_path: Path) -> None:
    profile = built(run("build", "chat", "--from-csv", str(csv), "--out", str(tmp_path / "out")))
    assert profile.source == "file requests.csv"
    assert list(profile.features) == ["input_tokens", "queue_seconds"]
    queue = profile.features["queue_seconds"]
    assert (queue.n_raw, queue.n_null, queue.n_infinite) == (1, 2, 1)
    assert profile.features["input_tokens"].points.tolist() == [1, 2, 3]


def test_features_and_filters(csv: Path, tmp_path: Path) -> None:
    out = ("--from-csv", str(csv), "--out", str(tmp_path))
    some = built(run("build", "chat", *out, "--features", "attributes.temperature", "--where", "tenant=acme"))
    assert list(some.features) == ["attributes.temperature"]
    assert (some.features["attributes.temperature"].n_raw, some.features["attributes.temperature"].n_null) == (1, 1)
    assert some.source == "file requests.csv, tenant=acme"
    streamed = built(run("build", "chat", *out, "--where", "is_streaming=true", "--where", "model=b"))
    assert streamed.features["input_tokens"].points.tolist() == [3]


def test_text_and_truth_fields_become_category_features(csv: Path, tmp_path: Path) -> None:
    asked = ("--features", "input_tokens,model,is_streaming", "--out", str(tmp_path))
    result = run("build", "chat", "--from-csv", str(csv), *asked)
    profile = built(result)
    assert list(profile.features) == ["input_tokens"]
    assert profile.categories("model").counts.as_histogram() == {("text", "a"): 2, ("text", "b"): 1}
    assert profile.categories("is_streaming").counts.count("true") == 2
    assert "a (66.7%)" in result.output
    assert "warning: model has 3 values" in result.stderr
    folded = built(run("build", "chat", "--from-csv", str(csv), *asked, "--categories", "1"))
    assert (folded.categories("model").counts.n_other, folded.categories("model").n_categories) == (1, 2)
    assert folded.digest != profile.digest


def test_categories_alone_are_a_reference(tmp_path: Path) -> None:
    asked = ("--features", "is_streaming,finish_reason", "--out", str(tmp_path))
    profile = built(run("build", "chat", "--from-trace", "--until", "5m", *asked))
    assert not profile.features
    assert {value for _, value in profile.categories("is_streaming").known} <= {"true", "false"}
    assert profile.categories("finish_reason").counts.count("stop") > 0


def test_few_values_are_warned_of_and_many_are_not(csv: Path, tmp_path: Path) -> None:
    result = run("build", "chat", "--from-csv", str(csv), "--out", str(tmp_path))
    assert "warning: input_tokens has 3 values" in result.stderr
    many = run("build", "chat", "--from-trace", "--until", "5m", "--features", "input_tokens", "--out", str(tmp_path))
    assert "warning" not in many.stderr


@pytest.mark.parametrize("shape", ["map", "struct"])
def test_parquet_reaches_into_attributes(tmp_path: Path, shape: str) -> None:
    values = [{"x": 1.0}, {"x": 2.5}, None]
    kind = pa.map_(pa.string(), pa.float64()) if shape == "map" else pa.struct([("x", pa.float64())])
    rows = [None if v is None else list(v.items()) for v in values] if shape == "map" else values
    file = tmp_path / "requests.parquet"
    table = pa.table({"input_tokens": pa.array([1, 2, 3]), "attributes": pa.array(rows, type=kind)})
    pq.write_table(table, file)
    arguments = ("--from-parquet", str(file), "--features", "attributes.x", "--out", str(tmp_path))
    profile = built(run("build", "chat", *arguments))
    assert profile.features["attributes.x"].points.tolist() == [1.0, 2.5]
    assert profile.features["attributes.x"].n_null == 1


def test_the_same_values_give_the_same_file(tmp_path: Path) -> None:
    arguments = ("build", "chat", "--from-trace", "--until", "10%", "--out", str(tmp_path))
    first, second = (run(*arguments).stdout.splitlines()[-1] for _ in range(2))
    assert first == second
    assert built(run(*arguments, "--seed", "2")).digest != ReferenceProfile.load(first).digest


def test_the_trace_is_served_by_the_replays_model() -> None:
    """Tokens are the trace's own; what is drawn has the replay's distribution but not its values."""
    half = Position(share=0.5)
    asked = wanted("input_tokens,prompt_entropy", ())
    reference, replayed = (columns_of_trace(ReplayPlan(seed=s, part_until=half), asked) for s in (1, 0))
    trace = read_trace()
    rows = int((trace.arrival_ns < trace.duration_ns / 2).sum())
    for drawn in (reference, replayed):  # in the order of event time, which is drawn
        assert np.array_equal(np.sort(drawn["input_tokens"]), np.sort(trace.input_tokens[:rows]))
    assert not np.any(reference["prompt_entropy"] == replayed["prompt_entropy"])
    assert reference["prompt_entropy"].mean() == pytest.approx(replayed["prompt_entropy"].mean(), abs=0.02)


# What depends on the order of the rows.


def waves(folder: Path, *, is_shuffled: bool, times: list[int | None] | None = None) -> Path:
    """An AR(1) series of coefficient 0.9, as Parquet; `times` are event times of the rows before they are shuffled."""
    rng = np.random.default_rng(3)
    values = np.zeros(2000)
    for at in range(1, values.size):
        values[at] = 0.9 * values[at - 1] + rng.normal()
    columns = {"queue_seconds": pa.array(values)} | ({"event_time_ms": pa.array(times)} if times else {})
    table = pa.table(columns)
    folder.mkdir()
    file = folder / "waves.parquet"
    pq.write_table(table.take(rng.permutation(values.size)) if is_shuffled else table, file)
    return file


def autocorrelation(file: Path, *more: str) -> float | None:
    profile = built(run("build", "chat", "--from-parquet", str(file), "--out", str(file.parent), *more))
    return profile.features["queue_seconds"].autocorrelation


def test_a_file_with_event_times_is_taken_in_their_order(tmp_path: Path) -> None:
    times: list[int | None] = list(range(1, 2001))
    assert autocorrelation(waves(tmp_path / "shuffled", is_shuffled=True, times=times)) == pytest.approx(0.9, abs=0.05)


def test_the_order_of_a_file_without_them_is_not_known_unless_it_is_said(tmp_path: Path) -> None:
    file = waves(tmp_path / "plain", is_shuffled=False)
    assert autocorrelation(file) is None
    assert autocorrelation(file, "--in-time-order") == pytest.approx(0.9, abs=0.05)
    times = [None, *range(2, 2001)]
    assert autocorrelation(waves(tmp_path / "holes", is_shuffled=True, times=times)) is None


def test_a_csv_is_taken_in_the_order_of_its_event_times(tmp_path: Path) -> None:
    file = tmp_path / "requests.csv"
    rows = [f"{at},{at % 100}" for at in (*range(1001, 2001), *range(1, 1001))]
    file.write_text("\n".join(["event_time_ms,input_tokens", *rows]))
    profile = built(run("build", "chat", "--from-csv", str(file), "--out", str(tmp_path)))
    in_order = ReferenceProfile.build("chat", {"input_tokens": np.arange(1, 2001) % 100}, source="", in_time_order=True)
    expected = in_order.features["input_tokens"].autocorrelation
    assert expected is not None
    assert profile.features["input_tokens"].autocorrelation == expected


def test_the_traces_requests_are_in_the_order_of_event_time(tmp_path: Path) -> None:
    plan = ReplayPlan(seed=1, part_until=Position(seconds=600))
    ends, tokens = [], []
    for _, block in served_blocks(resolve(plan)):
        ends += block.end_ns.tolist()
        tokens += block.fields["output_tokens"].tolist()
    by_end = [tokens[at] for at in np.argsort(ends, kind="stable")]
    assert columns_of_trace(plan, wanted("output_tokens", ()))["output_tokens"].tolist() == by_end
    profile = built(run("build", "chat", "--from-trace", "--until", "10m", "--out", str(tmp_path)))
    assert profile.features["output_tokens"].autocorrelation is not None


def test_show_verifies_the_digest(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run("build", "chat", "--from-csv", str(csv), "--out", str(tmp_path)).stdout.splitlines()[-1]
    shown = run("show", path)
    assert shown.exit_code == 0
    for words in ("file requests.csv", "sha256:", "input_tokens", "exact"):
        assert words in shown.output
    Path(path).write_text(Path(path).read_text().replace("chat", "chit"))
    assert "digest" in refused(capsys, "show", path)


@pytest.mark.parametrize(
    ("arguments", "because"),
    [
        (("--from-csv", "{csv}", "--features", "prompt_entropy"), "prompt_entropy: there is no such column"),
        (("--from-csv", "{csv}", "--features", "attributes.x"), "attributes.x: there is no such column"),
        (("--from-csv", "{csv}", "--where", "arm=a"), "arm: there is no such column"),
        (("--from-csv", "{csv}", "--where", "tenant=none"), "no request where tenant=none"),
        (("--from-csv", "{csv}", "--features", "trace_id"), "'trace_id' is no feature of a request"),
        (("--from-csv", "{csv}", "--features", "user_hash"), "'user_hash' is no feature of a request"),
        (("--from-csv", "{csv}", "--where", "colour=red"), "no field=value"),
        (("--from-csv", "{csv}", "--since", "1h"), "cut a file with --where"),
        (("--from-csv", "none.csv"), "none.csv: (file): no such file"),
        (("--from-parquet", "{csv}"), "can't be read as Parquet"),
        (("--from-csv", "{csv}", "--from-trace"), "exactly one"),
        (("--from-trace", "--in-time-order"), "is said of a file"),
        ((), "exactly one"),
        (("--from-trace", "--until", "2026-01-31T12:00:00Z"), "--until: is an instant"),
        (("--from-trace", "--features", "perplexity"), "perplexity: is no field of a replayed request"),
        (("--from-topic", "requests", "--since", "50%"), "share of nothing"),
        (("--from-topic", "requests", "--bootstrap-servers", "127.0.0.1:1"), "--bootstrap-servers: 127.0.0.1:1"),
    ],
)
def test_refused_in_a_sentence(
    csv: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], because: str
) -> None:
    said = refused(capsys, "build", "chat", *(argument.format(csv=csv) for argument in arguments))
    assert because in said
    assert "Traceback" not in said


def test_text_is_no_feature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requests.csv"
    file.write_text("input_tokens,queue_seconds\nmany,true\nfew,false\n")
    for feature in ("input_tokens", "queue_seconds"):
        said = refused(capsys, "build", "chat", "--from-csv", str(file), "--features", feature)
        assert f"{feature}: is of type" in said


def test_a_bad_name_is_refused(csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name" in refused(capsys, "build", "../chat", "--from-csv", str(csv))


def test_an_embedding_reference_is_built_from_requests(tmp_path: Path) -> None:
    rows = [{"event_time_ms": n + 1, "prompt_embedding": [1.0, float(n % 3)]} for n in range(30)]
    rows.append({"event_time_ms": 40, "prompt_embedding": None})
    past = tmp_path / "past.parquet"
    pq.write_table(pa.Table.from_pylist(rows), past)
    arguments = ["embed", "chat", "--from-parquet", str(past), "--out", str(tmp_path)]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert "30 embeddings of 2 dimensions" in result.output
    assert "1 without" in result.output
    built = EmbeddingReference.load(result.output.split()[-1])
    directions = [[1.0, 0.0], [0.5**0.5, 0.5**0.5], [0.2**0.5, 0.8**0.5]]
    mean = [sum(column) for column in zip(*directions, strict=True)]
    length = math.hypot(*mean)
    cosines = [sum(a * b for a, b in zip(d, mean, strict=True)) / length for d in directions]
    assert built.mean_cosine == pytest.approx(sum(cosines) / 3)
    assert CliRunner().invoke(command, ["embed", "chat"]).exit_code == 2
