"""A pretended accelerator, for `benchmarks/full_card.py` where there is none: all processes begun with it share one.

What is sent to `cuda` stays on the processor. Memory is counted in inputs: every slice that a method is asked about
takes its length while it lasts, and is refused where all would have more than the card holds. `SMALL_CARD` is the
folder with what each process has taken, `SMALL_CARD_HOLDS` how much there is.
"""

import fcntl
import functools
import os
import sys
import time
from pathlib import Path

import torch

from forsooth import chunks

FOLDER = Path(os.environ["SMALL_CARD"])
HOLDS = int(os.environ["SMALL_CARD_HOLDS"])
LEAST = 0.2  # seconds that a slice keeps its place, so that processes meet on the card

to_place, module_to, work = torch.Tensor.to, torch.nn.Module.to, chunks._tried


def here(given):
    """The processor in the place of an accelerator."""
    if isinstance(given, str | torch.device) and str(given).startswith("cuda"):
        return "cpu"
    return given


def sent(to, thing, *places, **named):
    return to(thing, *map(here, places), **{name: here(value) for name, value in named.items()})


def take(count: int) -> None:
    """Have so many places of the card, if there are as many; and note the most that were ever taken."""
    mine, peak = FOLDER / f"{os.getpid()}.taken", FOLDER / "peak"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mine.write_text("0")
        total = count + sum(int(place.read_text()) for place in FOLDER.glob("*.taken"))
        if total > HOLDS:
            raise torch.OutOfMemoryError("the pretended card is full")
        mine.write_text(str(count))
        most = int(peak.read_text()) if peak.exists() else 0
        peak.write_text(str(max(most, total)))


def on_the_card(function, slices):
    if not chunks.PRESSURE.again or "maps_of" not in function.__qualname__:  # for the processor, or no method
        return work(function, slices)

    def asked(*parts):
        take(len(parts[0]))
        try:
            time.sleep(LEAST)
            return function(*parts)
        finally:
            take(0)

    return work(asked, slices)


def asked_by_words() -> bool:
    """Whether `--device cuda` may be said; all else that asks would use what is not here."""
    return sys._getframe(1).f_globals["__name__"] == "forsooth.arguments"


torch.Tensor.to = lambda tensor, *places, **named: sent(to_place, tensor, *places, **named)
torch.nn.Module.to = functools.wraps(module_to)(lambda net, *places, **named: sent(module_to, net, *places, **named))
torch.cuda.is_available = asked_by_words
chunks._tried = on_the_card
