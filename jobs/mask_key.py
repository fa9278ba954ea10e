"""The key of masks: from the environment of whoever submits the job, never from a command line, never printed.

What travels to the workers, inside the function that masks, is a key derived from it: Flink's workers don't see the
submitter's environment, and Beam logs that of each worker it starts.
"""

import os

from jobs.kafka_client import ConfigurationError
from udfs.privacy.mask import SHORTEST_KEY, derived_key

VARIABLE = "SLACKTIDE_MASK_KEY"


def mask_key(*, required: bool) -> bytes | None:
    """Return the derived key, or None where the variable is not set. Raises ConfigurationError, not showing the key,
    where it is required and not set, or too short.
    """
    secret = os.environ.get(VARIABLE, "")
    if not secret:
        if required:
            remedy = f"Set it to {SHORTEST_KEY} characters or more, as by `openssl rand -hex 32`, and keep it"
            raise ConfigurationError("environment", VARIABLE, "is not set, and carried text is masked with it", remedy)
        return None
    try:
        return derived_key(secret)
    except ValueError as error:
        raise ConfigurationError(
            "environment", VARIABLE, str(error), "Use the output of `openssl rand -hex 32`"
        ) from None
