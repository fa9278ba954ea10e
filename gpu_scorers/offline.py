"""Keeps Hugging Face's libraries off the network: call `stay_offline()` before importing them.

They look up models, adapters and templates on the hub in more places than `local_files_only` reaches.
"""

import os

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
# Its threads would be forked with the worker, which it warns about and then switches off anyway.
SINGLE_THREADED = {"TOKENIZERS_PARALLELISM": "false"}


def stay_offline() -> None:
    """Set the variables that these libraries read when they are imported.

    >>> stay_offline()
    >>> os.environ["HF_HUB_OFFLINE"]
    '1'
    """
    os.environ.update(OFFLINE)
    for name, value in SINGLE_THREADED.items():
        os.environ.setdefault(name, value)
