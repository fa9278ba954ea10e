"""The SLO job's SQL as committed, the plan that Flink makes of it, and its functions without an engine."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
import pytest

from infra.paths import CONF, jars
from jobs.flink_environment import open_environment
from jobs.kafka_client import ConfigurationError
from jobs.request_slices import OPTIONS
from jobs.settings import JobSettings
from jobs.slo import (
    build,
    front_statements,
    groups_of,
    sink_statements,
    slice_statements,
    slicer_of,
    sources_of,
    validate,
)
from jobs.slos import Slos
from schemas.verdicts import Verdict
from tests.slo_files import START_MS, TTFT, TTFT_WINDOW, run, slo
from udfs.judging.window_judge import InputKind, Values
from udfs.parts import split_parts
from udfs.slicing.packets import pack
from udfs.slo.flink_slos import SloGroup, TallySlices
from udfs.slo.indicators import Tally
from udfs.slo.state import decode, encode, instants

GOLDEN = Path(__file__).parent.parent / "golden" / "slo"
ARGUMENTS = ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-", "--slos", str(CONF / "slos.yaml")]


def test_statements_as_committed() -> None:
    _, settings, slos = validate(ARGUMENTS)
    assert all_statements(settings, slos) == (GOLDEN / "statements.sql").read_text()


def all_statements(settings: JobSettings, slos: Slos) -> str:
    found = [statement for source in sources_of(slos) for statement in slice_statements(slos, source)]
    return ";\n\n".join([*found, *sink_statements(settings, slos)]) + ";\n"


def test_the_front_is_that_of_the_job() -> None:
    arguments, settings, slos = validate([*ARGUMENTS, "--watermark-bound-seconds", "12.5", "--until-now"])
    (source, *_) = front_statements(settings, slos, arguments, "requests")
    assert "'properties.group.id' = 'slacktide-slo'" in source
    assert "INTERVAL '0 00:00:12.500'" in source
    assert "'scan.bounded.mode' = 'latest-offset'" in source
    slicer = slicer_of(settings, slos, "requests")
    assert (slicer.job, slicer.topic) == ("slo", "eu-requests")
    (plan,) = slicer.plans
    assert (plan.group_by, plan.slide_ms) == (("service_name", "model"), 30_000)
    wanted = {"time_to_first_token_seconds", "is_streaming", "factuality", "is_error", "input_tokens",
              "kv_cache_hit_ratio"}  # fmt: skip
    assert {given.field for given in plan.inputs} == wanted


def test_a_wrong_file_is_refused_before_submission(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("apiVersion: openslo/v1")
    with pytest.raises(ConfigurationError, match="kind"):
        validate([*ARGUMENTS[:-1], str(tmp_path / "none.yaml")])


def test_one_call_tallies_every_slo_of_a_group() -> None:
    group = SloGroup(("model",), (slo(), slo("ttft", indicator=TTFT, window=TTFT_WINDOW)))

    def packet(errors: list[str], seconds: list[float]) -> bytes:
        named: dict[str, Values] = {
            "is_error": errors,
            "is_streaming": ["true"] * len(errors),
            "time_to_first_token_seconds": np.array(seconds),
        }
        return pack(group.inputs, [named[given.field] for given in group.inputs])

    slices = pd.Series([np.array([packet(["false", "true"], [0.1, 0.2]), packet(["false"], [0.3])], dtype=object)])
    for names in ("model", pd.Series(["model"])):
        (joined,) = TallySlices([group]).eval(names, slices)
        errors, ttft = map(Tally.from_bytes, split_parts(joined))
        assert (errors.good, errors.total, ttft.total, bool(ttft.sketch)) == (2, 3, 3, True)
    assert {given.kind for given in group.inputs} == {InputKind.TEXT, InputKind.NUMBER}


def test_slos_with_the_same_labels_share_slices() -> None:
    _, _, slos = validate(ARGUMENTS)
    (group,) = groups_of(slos, "requests")
    assert (group.name, len(group.slos)) == ("service_name,model", 5)


def test_states_and_verdicts_of_the_first_version_stay_readable() -> None:
    of = slo("ttft", indicator=TTFT, window=TTFT_WINDOW)
    slices = [Tally(0, 0, n_null=number) for number in range(5)]
    state, verdicts = run(of, slices)
    assert state is not None
    first_version = bytes.fromhex((GOLDEN / "state_v1.hex").read_text())
    assert encode(decode(first_version, of)) == state
    assert instants(first_version) == (START_MS + 150_000, START_MS + 150_000)
    known = [Verdict.from_json(line) for line in (GOLDEN / "verdicts.jsonl").read_bytes().splitlines()]
    _, now = run(slo(), [Tally(98, 100)] * 4)
    assert now == known
    assert [orjson.loads(verdict.to_json()) for verdict in now] == [
        orjson.loads(line) for line in (GOLDEN / "verdicts.jsonl").read_bytes().splitlines()
    ]
    assert len(verdicts) == 11


@pytest.mark.engine
def test_one_copy_of_everything_shared() -> None:
    """The planner could take the requests apart, or tally the slices, once for each sink."""
    arguments, settings, slos = validate(ARGUMENTS)
    connectors = ";".join(jar.as_uri() for jar in jars("flink"))
    environment, table_env = open_environment(settings, "slo", OPTIONS | {"pipeline.jars": connectors})
    build(table_env, settings, slos, arguments).attach_as_datastream()
    nodes = [node["type"] for node in json.loads(environment.get_execution_plan())["nodes"]]
    kinds = Counter(re.sub(r"\[\d+\]", "", node) for node in nodes)
    assert (kinds["Source: requests"], kinds["OverAggregate"]) == (1, 1)
    assert kinds["PythonCalc"] == 2  # take, tally
    assert kinds["service levels of requests"] == 1
    assert [kinds[f"{sink}: Writer"] for sink in ("verdicts", "dead_letters", "books")] == [1, 1, 1]
