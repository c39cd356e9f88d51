"""What the user asks: images, a training, the artefacts that are feared and the methods that are planned."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from forsooth import names, plugins
from forsooth.adapters.trainings import model_name
from forsooth.attributions import METHODS
from forsooth.datasets.manipulations import NAMES
from forsooth.records import Method, Names, UsageError
from forsooth.user.requests import NULLS, typed

PLANNED = (
    "saliency",
    "gradient_x_input",
    "integrated_gradients",
    "smooth_grad_50",
    "grad_cam",
    "guided_backprop",
    "gradient_shap",
    "lime_quickshift_200",
)
SHORT = {"blur": "peripheral_blur", "brightness": "center_brightness", "hue": "striped_hue", "noise": "striped_noise"}
NET = "residual_small"  # trained where the user gives no training of their own
LEAST_SIDE = 16
SPOKEN = ("data", "train", "methods", "artefacts", "size", "images", "visibility", "samples", "seed", "device")


@dataclass(frozen=True, kw_only=True)
class DryRunRequest:
    """The user's words, as plain values.

    data        folder of class folders or zip; nothing is written there
    train       package.module:function of the user's training; None: ours
    methods     that the user plans to use; the nulls and the oracle are always asked, too
    artefacts   that the user fears
    size        side of the images, px
    images      so many are read at most, classes shared out evenly; None: all
    visibility  level of the artefacts, 0 (least) to 4
    samples     test images with the artefact that are explained, and as many without
    """

    data: str
    train: str | None = None
    methods: Names = PLANNED
    artefacts: Names = NAMES
    size: int = 64
    images: int | None = 2_000
    visibility: int = 3
    samples: int = 50
    device: str = "cpu"
    seed: int = 0

    @property
    def model(self) -> str:
        """The name of the model in rows and on the page."""
        if self.train:
            return model_name(self.train)
        return NET

    def records(self) -> list[Method]:
        """The planned methods, and behind them the nulls and the oracle, which are always asked."""
        once = dict.fromkeys([*(self.methods or PLANNED), *NULLS])
        return [plugins.method(name, METHODS) for name in once]

    def kinds(self) -> dict[str, str]:
        """method -> method, null (ignores the model) or oracle, in the order of the table."""
        return {method.name: kind_of(method) for method in self.records()}

    def check(self) -> None:
        """UsageError where a number has no meaning."""
        if self.visibility not in range(5):
            raise UsageError(f"`visibility` must be 0 (least) to 4, got {self.visibility}")
        for name, least in (("size", LEAST_SIDE), ("samples", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"`{name}` must be at least {least}, got {getattr(self, name)}")

    def command(self) -> str:
        """The words at the terminal that repeat it."""
        options = {**asdict(self), "images": self.images or 0}
        return typed("dryrun", {name: options[name] for name in SPOKEN})


def kind_of(method: Method) -> str:
    if "truth" in method.needs:
        return "oracle"
    return {True: "null", False: "method"}[method.null]


def artefact_names(words: Iterable[str]) -> Names:
    """Full names of artefacts, each once; all five where none is named.

    >>> artefact_names(["hue", "watermark", "striped_hue"])
    ('striped_hue', 'watermark')
    """
    full = [SHORT.get(name, name) for name in words]
    for name in full:
        if name not in NAMES:
            raise names.unknown(name, (*SHORT, *NAMES), argument="artefacts")
    return tuple(dict.fromkeys(full)) or NAMES
