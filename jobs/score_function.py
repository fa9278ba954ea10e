"""The score job's vectorised function: one Python call for a batch of sampled records.

It carries the settings of the scorers, never a model: each worker loads its own, once, before its first record.
"""

from typing import Any

import pandas as pd
from pyflink.table import DataTypes
from pyflink.table.udf import FunctionContext, ScalarFunction

from jobs.score_batch import SampledRecord, ScoreBatch, ScorerInJob
from jobs.scorers import Scorers, build_scorers

SCORED = DataTypes.ROW(
    [
        DataTypes.FIELD("kind", DataTypes.STRING()),
        DataTypes.FIELD("scores", DataTypes.ARRAY(DataTypes.BYTES())),
        DataTypes.FIELD("decisions", DataTypes.ARRAY(DataTypes.BYTES())),
        DataTypes.FIELD("letters", DataTypes.ARRAY(DataTypes.BYTES())),
    ]
)


class ScoreRequests(ScalarFunction):
    """Sampled records -> a row each: what it counts as, and the payloads for topics scores, decisions, dead_letters."""

    def __init__(self, scorers: Scorers, topic: str) -> None:
        self._scorers, self._topic = scorers, topic
        self._batch: ScoreBatch

    def open(self, function_context: FunctionContext) -> None:
        """Load the models. Raises ConfigurationError where one has gone or changed since the job was submitted."""
        loaded = build_scorers(self._scorers)
        plans = [
            ScorerInJob(scorer, spec.sampling, spec.review)
            for scorer, spec in zip(loaded, self._scorers.scorers, strict=True)
        ]
        self._batch = ScoreBatch(plans, self._topic, self._scorers.digest)

    def eval(self, *columns: "pd.Series[Any]") -> pd.DataFrame:
        """Series of BYTES, STRING, BIGINT, INT and two BIGINT to rows of `SCORED`, as many.

        They are the record, its trace id, its place in its series' minute, partition, offset, and Kafka's timestamp.
        """
        values, trace_ids, *numbers = columns
        rows = zip(values, trace_ids, *(column.tolist() for column in numbers), strict=True)
        outcomes = self._batch.score([SampledRecord(*row) for row in rows])
        return pd.DataFrame(
            {
                "kind": [str(outcome.kind) for outcome in outcomes],
                "scores": [outcome.scores for outcome in outcomes],
                "decisions": [outcome.decisions for outcome in outcomes],
                "letters": [outcome.letters for outcome in outcomes],
            }
        )
