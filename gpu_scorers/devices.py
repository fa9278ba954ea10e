"""Which device models run on: CUDA where there is one, else the CPU; chosen once a process and logged.

In float32 both give the same figures within 1e-4, which needs TF32 switched off: it rounds to 10 bits. Lower precision
is used only where it is asked for.
"""

import contextlib
import functools
import logging
from dataclasses import dataclass

import torch

from gpu_scorers.model_files import ModelError

log = logging.getLogger(__name__)
DEVICES = ("auto", "cpu", "cuda")
# What a pass costs beside its tokens, as so many of them. CPU: MiniLM on one thread takes 4 to 8 ms for a text of one
# word, and 0.25 ms a token. CUDA: some 3 ms of launches, and over a million tokens a second; an estimate.
PASS_TOKENS = {"cpu": 32, "cuda": 4096}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class Device:
    """Where models run: `name` as torch spells it (`cpu`, `cuda:0`), `precision` of matrix products, and words."""

    name: str
    precision: str = "float32"
    description: str = ""

    @property
    def is_cuda(self) -> bool:
        """Whether it has a memory of its own that may run out."""
        return self.name.startswith("cuda")

    @property
    def pass_tokens(self) -> int:
        """How many tokens take as long as a forward pass that has none (`PASS_TOKENS`)."""
        return PASS_TOKENS["cuda" if self.is_cuda else "cpu"]

    def autocast(self, on: str | None = None) -> contextlib.AbstractContextManager[object]:
        """Return the context of a forward pass, on this device or on `on`: lower precision only where asked."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(device_type=(on or self.name).split(":")[0], dtype=PRECISIONS[self.precision])


CPU = Device("cpu", description="CPU")


@functools.cache
def choose_device(wanted: str = "auto", precision: str = "float32", threads: int | None = None) -> Device:
    """Return the device that `wanted` (`auto`, `cpu`, `cuda`) means here, and log the choice, once a process.

    `threads` is how many cores the CPU may take; None leaves it to torch. Raises ModelError where `cuda` is wanted and
    there is none.

    >>> choose_device("cpu").name
    'cpu'
    """
    has_cuda = torch.cuda.is_available()
    if wanted == "cuda" and not has_cuda:
        raise ModelError("(all)", "device cuda is asked for and torch finds none", "Write `device: auto`, or mend CUDA")
    if threads is not None:
        torch.set_num_threads(threads)
    if wanted == "cpu" or not has_cuda:
        why = "asked for" if wanted == "cpu" else "no CUDA device"
        device = Device("cpu", precision, f"CPU, {torch.get_num_threads()} threads")
    else:
        why = "asked for" if wanted == "cuda" else "a CUDA device is there"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        device = Device("cuda:0", precision, torch.cuda.get_device_name(0))
    log.info("models run on %s (%s, %s): %s", device.name, device.description, device.precision, why)
    return device
