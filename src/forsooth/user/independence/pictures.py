"""What the page shows: some inputs without and with their patches, and what the maps of each become."""

from collections.abc import Mapping

from torch import Tensor

from forsooth.records import Cell
from forsooth.scores.functionless import Patched
from forsooth.suites import choose
from forsooth.suites.album import Album
from forsooth.user.independence.patches import Case
from forsooth.user.pages import add_pictures, grey

STATES = {"as it is": "before", "with its patch": "after"}  # row of the page -> tensor of a method's cell
SEEN = "Of each input the pictures show the maps as it is, and with its patch; under “truth” is the patch's place."


def shown(patched: Patched) -> Tensor:
    """Numbers of the inputs that the page shows: the first that have a patch. (k,)"""
    return patched.found().nonzero().flatten()[: choose.SHOWN].cpu()


def album_of(case: Case, patched: Patched, maps: Mapping[str, Cell]) -> Album:
    """Pictures of some inputs; none of inputs that are no images. maps: method -> its cell"""
    album = Album({})
    if case.mask.ndim != 3:  # (n, h, w)
        return album
    for place, row in enumerate(shown(patched).tolist()):
        for label, inputs in zip(STATES, (case.x, patched.x), strict=True):
            seen = {("input", ""): grey(inputs[row]), ("truth", ""): case.mask[row]}
            for method, cell in maps.items():
                if STATES[label] in cell.tensors:
                    seen["example", method] = cell.tensors[STATES[label]][place]
            add_pictures(album, seen, place, label)
    return album
