"""Makes `sample_traces/`: `make samples` or `python -m tests.make_samples [FOLDER]`. Run after changes of emulator or tables."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path

from explorer.commands import main

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_traces"
#: The command that makes each profile, as one types it at the top of the checkout.
COMMANDS = {
    "matmul_unblocked": "trnscope capture emulator/kernels/matmul.py:matmul_unblocked"
    " --arg left_t=bf16[512,512] --arg right=bf16[512,2048] -o sample_traces/matmul_unblocked",
    "matmul_blocked": "trnscope capture emulator/kernels/matmul.py:matmul_blocked"
    " --arg left_t=bf16[512,512] --arg right=bf16[512,2048] -o sample_traces/matmul_blocked",
    "attention": "trnscope capture emulator/kernels/attention.py:attention_forward"
    " --arg q_t=bf16[128,256] --arg k_t=bf16[128,1024] --arg v=bf16[1024,128] -o sample_traces/attention",
}


def make(name: str, folder: Path = SAMPLES) -> Path:
    """The profile of that name, made anew in `folder`. Raises RuntimeError if its command fails."""
    words = shlex.split(COMMANDS[name])[1:]
    output = folder / name
    words[words.index("-o") + 1] = str(output)
    with contextlib.chdir(ROOT):
        if main([*words, "--force"]) != 0:
            raise RuntimeError(f"{COMMANDS[name]}: failed")
    return output


if __name__ == "__main__":
    for sample in COMMANDS:
        make(sample, Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else SAMPLES)
