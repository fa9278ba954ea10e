"""Service levels: error budgets and burn rates over counts, without raw events (spec S1 to S3). Pure."""

from udfs.slo.budget import Budget, error_budget
from udfs.slo.burn_rate import burn_rate

__all__ = ["Budget", "burn_rate", "error_budget"]
