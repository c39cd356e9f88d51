"""Every line of docs/bring-your-own.md, executed: what it names is taken, and its map is that of the direct call.

A line about a library that is not installed is skipped, and says which.
"""

import functools
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import captum
import captum.attr
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from torch import Tensor, nn
from without_torchvision import hollow

import forsooth
from forsooth import plugins
from forsooth.adapters import texts, trainings
from forsooth.adapters.models import adapt
from forsooth.attributions import METHODS as CATALOGUE
from forsooth.records import UsageError

PAGE = (Path(__file__).parents[1] / "docs" / "bring-your-own.md").read_text()
METHODS = re.findall(r"^\|.*\| `(methods=.*)` \|$", PAGE, flags=re.M)
MODELS = re.findall(r"^\|.*\| `(model=.*)` \|$", PAGE, flags=re.M)
DRAW = torch.Generator().manual_seed(0)
IMAGES = torch.randn(6, 1, 4, 4, generator=DRAW)
TABLE = torch.randn(40, 4, generator=DRAW)
LABELS = (TABLE[:, 0] > 0).long()
CLASSES = torch.tensor([0, 1, 2, 0, 1, 2])
LIBRARIES = {  # word in a line -> what must be importable
    "shap.": ("shap",),
    "zennit.": ("zennit", "zennit.composites", "zennit.attribution"),
    "torchcam.": ("torchcam.methods",),
    "pytorch_grad_cam.": ("pytorch_grad_cam",),
    "timm.": ("timm.models",),
    "transformers.": ("transformers",),
    "keras": ("keras",),
    "xgboost.": ("xgboost",),
    "lightgbm.": ("lightgbm",),
}


def my_function(model, x, target, power=1):
    x = x.clone().requires_grad_()
    output = model(x)[torch.arange(len(x)), target].sum()
    return torch.autograd.grad(output, x)[0] ** power


def explain_func(model, inputs, targets, **kwargs) -> np.ndarray:
    return my_function(model, inputs, targets).numpy()


def explain_arrays(model, inputs, targets, **kwargs) -> np.ndarray:
    return my_function(model, torch.from_numpy(inputs), torch.from_numpy(targets)).numpy()


class MyExplainer:
    def __call__(self, model, x, target):
        return my_function(model, x, target)


class Wrapped(nn.Module):
    def __init__(self, inner, output):
        super().__init__()
        self.inner = inner
        self.output = output

    def forward(self, x):
        return self.output(self.inner(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.rows, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.head(self.encoder(self.rows(x[:, 0])).mean(1))


def library(name: str) -> ModuleType:
    """The module, or a skip that says why there is none."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    needs_torchvision = name.partition(".")[0] in ("zennit", "timm", "pytorch_grad_cam")  # for a class or two
    with warnings.catch_warnings(), hollow() if needs_torchvision else nullcontext():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(f"{name} is not installed: {error}")


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)).eval()


def of_hugging_face(known: dict) -> dict:
    transformers = known["transformers"]
    common = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    images = {"image_size": 4, "patch_size": 2, "num_channels": 1}
    torch.manual_seed(0)
    return {
        "vit_config": transformers.ViTConfig(**common, **images, num_labels=3),
        "bert_config": transformers.BertConfig(**common, vocab_size=30, max_position_embeddings=9, num_labels=3),
    }


def names(line: str) -> dict:
    """What the words of a line mean; libraries are imported where it speaks of them."""
    net = network()
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(TABLE.numpy(), LABELS.numpy())
    known = {
        "functools": functools,
        "captum": captum,
        "forsooth": forsooth,
        "my_function": my_function,
        "explain_func": explain_func,
        "explain_arrays": explain_arrays,
        "MyExplainer": MyExplainer,
        "net": net,
        "images": IMAGES,
        "table": TABLE.numpy(),
        "labels": LABELS.numpy(),
        "encoder": Encoder().eval(),
        "with_record": Wrapped(net, lambda logits: SimpleNamespace(loss=logits.sum(), logits=logits)),
        "with_tuple": Wrapped(net, lambda logits: (logits.sum(), logits)),
        "forest": forest,
        "regressor": RandomForestRegressor(5, max_depth=3, random_state=0).fit(TABLE.numpy(), TABLE[:, 0].numpy()),
    }
    for word, modules in LIBRARIES.items():
        if word in line:
            for module in modules:
                library(module)
            home = modules[0].partition(".")[0]
            known[home] = sys.modules[home]
    if "keras" in known:
        layers = known["keras"].layers
        known["keras_model"] = known["keras"].Sequential([layers.Input((1, 4, 4)), layers.Flatten(), layers.Dense(3)])
    if "transformers" in known:
        known |= of_hugging_face(known)
    return known


def value(line: str, known: dict):
    """What stands behind `methods=` or `model=` in a line of the page."""
    return eval(line.partition("=")[2], known)


def bias(model, inputs, **words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Captum, on hooks
        return forsooth.bias(model, inputs, permutations=4, **{"players": "pixels", **words})


@pytest.fixture(autouse=True)
def offering(monkeypatch, tmp_path):
    """An installed package that offers a method."""
    folder = tmp_path / "offering-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[forsooth.methods]\noffered = own_methods:gradient\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_the_page_has_twelve_kinds_of_other_libraries():
    foreign = [line for line in METHODS + MODELS if "captum." in line or any(word in line for word in LIBRARIES)]
    assert len(foreign) >= 12 and all(len(line) < 200 for line in METHODS + MODELS)


def slope(known: dict) -> Tensor:
    return my_function(known["net"], IMAGES, CLASSES)


def shaps(known: dict) -> Tensor:
    values = value(next(line for line in METHODS if "GradientExplainer" in line), known)[0].shap_values(IMAGES)
    return torch.from_numpy(values)[torch.arange(6), ..., CLASSES].float()


def of_table(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values)[torch.arange(6), :, LABELS[:6]]


def relevance(known: dict, line: str) -> Tensor:
    zennit = known["zennit"]
    given = value(line, known)[0]
    if not isinstance(given, zennit.attribution.Gradient):
        given = zennit.attribution.Gradient(known["net"], given)
    with given as attributor:
        return attributor(IMAGES.clone().requires_grad_(), torch.eye(3)[CLASSES])[1].detach()


def layer_cam(known: dict, line: str) -> Tensor:
    with value(line, known)[0] as extractor:
        maps = extractor(CLASSES.tolist(), known["net"](IMAGES.clone().requires_grad_()))[0]
    return F.interpolate(maps[:, None], size=(4, 4), mode="bilinear")


def grad_cam(known: dict, line: str) -> Tensor:
    targets = [lambda output, k=k: output[k] for k in CLASSES.tolist()]
    return torch.from_numpy(value(line, known)[0](IMAGES.clone(), targets))[:, None]


def inner(line: str) -> Callable[[dict], Tensor]:
    """The direct call of an object of Captum."""

    def direct(known: dict) -> Tensor:
        given = value(line, known)[0]
        given = given(known["net"]) if isinstance(given, type) else given
        torch.manual_seed(7)
        return getattr(given, "attribute", given)(IMAGES.clone().requires_grad_(), target=CLASSES).detach()

    return direct


def direct(line: str) -> Callable[[dict], Tensor]:
    """What the map of a line must be, by calling its object oneself."""
    ways = {
        "power=2": lambda known: slope(known) ** 2,
        "lambda": lambda known: torch.ones_like(IMAGES),
        "captum.": inner(line),
        "shap.Grad": shaps,
        "shap.Tree": lambda known: of_table(value(line, known)[0].shap_values(TABLE[:6].numpy())),
        "zennit.": lambda known: relevance(known, line),
        "torchcam.": lambda known: layer_cam(known, line),
        "grad_cam.": lambda known: grad_cam(known, line),
    }
    return next((way for word, way in ways.items() if word in line), slope)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", METHODS)
def test_a_method_gives_what_its_direct_call_gives(line):
    known = names(line)
    given = value(line, known)[0]
    ours = plugins.method(given, CATALOGUE) if isinstance(given, str) else plugins.wrapped(given, name="mine")
    table = "forest" in line
    x = TABLE[:6].double() if table else IMAGES
    target = LABELS[:6] if table else CLASSES
    drawn = range(2) if "shap.Grad" in line else range(1)  # it draws from numpy at every call
    maps, expected = [], []
    for seed in drawn:
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(7)
        maps.append(ours(known["net"], x, target))
        np.random.seed(seed)  # noqa: NPY002
        expected.append(direct(line)(known))
    torch.testing.assert_close(torch.stack(maps).float(), torch.stack(expected).float(), rtol=0, atol=1e-6)
    assert torch.stack(maps).abs().max() > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", METHODS)
def test_a_method_is_taken_as_it_is(line):
    known = names(line)
    if "forest" in line:
        answer = bias(known["forest"], TABLE[:6].numpy(), methods=[value(line, known)[0]])
    else:
        answer = bias(known["net"], IMAGES, methods=[value(line, known)[0]])
    mine = answer.table[answer.table.kind == "method"]
    assert list(mine.status) == ["ok"] and list(mine.failed) == [0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", MODELS)
def test_a_model_is_taken_as_it_is(line):
    known = names(line)
    model = value(line, known)
    if "Bert" in line:
        words = torch.randint(1, 30, (6, 7), generator=torch.Generator().manual_seed(3))
        answer = bias(model.eval(), words, methods=["lime"], players="words")
    elif any(word in line for word in ("forest", "regressor", "table")):
        answer = bias(model, TABLE[:6].numpy(), data=TABLE.numpy(), methods=["lime"])
    else:
        answer = bias(model, IMAGES.numpy(), methods=["lime"])
    assert answer.table.status.eq("ok").all()


class OfWords(nn.Module):
    """Token ids to classes; reads how long a text is from its ids, if it is told to."""

    def __init__(self, *, reads_padding: bool) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(9, 6), nn.Linear(6, 2)
        self.reads_padding = reads_padding

    def forward(self, ids):
        length = (ids > 0).sum(1, keepdim=True) if self.reads_padding else ids.shape[1]
        return self.head(self.words(ids).sum(1) / length)


def kinds() -> dict[str, tuple]:
    """What the table of doors speaks of, by the first words of its lines: a model and inputs for it."""
    torch.manual_seed(0)
    net, forest = network(), names("")["forest"]
    ids = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [2, 4, 0, 0]])
    return {
        "a torch module": (Wrapped(net, lambda logits: {"logits": logits}), IMAGES),
        "a classifier of texts": (OfWords(reads_padding=False).eval(), ids),
        "one that reads padding": (OfWords(reads_padding=True).eval(), ids),
        "a function of tensors": (lambda x: net(x), IMAGES),
        "a function on arrays": (lambda rows: forest.predict_proba(rows), TABLE[:6].numpy()),
        "an estimator": (forest, TABLE[:6].numpy()),
    }


DOORS = re.findall(r"^\| (a.*|one.*) \| (yes|no) \| (yes|no) \| (yes|no) \|$", PAGE, flags=re.M)


def test_every_kind_of_model_is_in_the_table_of_doors():
    assert [next(kind for kind in kinds() if line.startswith(kind)) for line, *_ in DOORS] == list(kinds())


@pytest.mark.parametrize("line", DOORS, ids=[line[0] for line in DOORS])
def test_bias_takes_what_the_table_says(line):
    model, inputs = next(given for kind, given in kinds().items() if line[0].startswith(kind))
    assert line[1] == "yes"
    assert forsooth.bias(model, inputs, permutations=4, methods=["kernel_shap"]).table.status.eq("ok").all()


@pytest.mark.parametrize("line", DOORS, ids=[line[0] for line in DOORS])
def test_independence_takes_what_the_table_says(line):
    model, inputs = next(given for kind, given in kinds().items() if line[0].startswith(kind))
    if line[2] == "yes":
        answer = forsooth.independence(model, inputs, patch="grid:2", methods=["gradient"])
        assert answer.table.status.eq("ok").all()
        return
    with pytest.raises(UsageError, match=r"`model` must (be a torch module|give a tensor)|`inputs` must be texts"):
        forsooth.independence(model, inputs, patch="grid:2", methods=["gradient"])


@pytest.mark.parametrize("line", DOORS, ids=[line[0] for line in DOORS])
def test_dryrun_takes_what_the_table_says(line, monkeypatch):
    model, _ = next(given for kind, given in kinds().items() if line[0].startswith(kind))
    if line[3] == "yes":
        model = Wrapped(nn.Sequential(nn.Flatten(), nn.Linear(16, 2)), lambda logits: (logits.sum(), logits))
    monkeypatch.setattr(trainings, "load_training", lambda path: lambda dataset: model)
    if line[3] == "yes":
        made = trainings.call_training("mine:train", None)
        assert trainings.ready_model("mine:train", made, IMAGES, device="cpu")(IMAGES).shape == (6, 2)
        return
    with pytest.raises(trainings.FailedTraining):
        trainings.ready_model("mine:train", trainings.call_training("mine:train", None), IMAGES, device="cpu")


def test_independence_asks_a_function_what_needs_no_layers():
    net = network()
    answer = forsooth.independence(lambda x: net(x), IMAGES, patch="grid:2")
    assert answer.table.status.eq("ok").all() and "lrp" not in set(answer.table.method)


@pytest.mark.parametrize("line", MODELS[1:3])
def test_a_wrapped_model_has_the_numbers_of_the_bare_one(line):
    bare, wrapped = (bias(value(one, names(one)), IMAGES, methods=["gradient"]).table for one in (MODELS[0], line))
    np.testing.assert_allclose(bare.m_bias, wrapped.m_bias, atol=1e-6)


def test_what_knows_its_own_model_alone_says_so():
    torchcam = library("torchcam.methods")
    with torchcam.GradCAM(network(), "1") as extractor:
        mine = plugins.wrapped(extractor, name="mine")
        with pytest.raises(UsageError, match="got a GradCAM of torch-cam, which knows only the model that it was made"):
            mine(network(), IMAGES, CLASSES)


def test_weights_keep_their_gradients_though_a_library_calls_backward():
    torchcam = library("torchcam.methods")
    net = network()
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    with torchcam.GradCAM(net, "1") as extractor:
        plugins.wrapped(extractor, name="mine")(net, IMAGES, CLASSES)
    assert all(torch.equal(parameter.grad, torch.ones_like(parameter)) for parameter in net.parameters())


def test_an_unknown_name_is_answered_with_those_that_packages_offer():
    with pytest.raises(UsageError, match="did you mean offered"):
        plugins.method("offerd", CATALOGUE)


def test_the_first_error_of_a_function_that_can_read_neither_is_told():
    def broken(model, inputs, targets):
        raise TypeError("neither")

    with pytest.raises(TypeError, match="neither"):
        plugins.wrapped(broken, name="mine")(network(), IMAGES, CLASSES)


def test_a_wrapped_model_adapts_to_its_bare_outputs():
    net = network()
    adapted, x = adapt(
        Wrapped(net, lambda logits: {"logits": logits}), IMAGES, arrays=False, device="auto", output="logits"
    )
    torch.testing.assert_close(adapted.model(x), net(IMAGES))


def asked_directly(line: str, model, inputs: np.ndarray) -> np.ndarray:
    """What a model of the page answers its own user: logits, probabilities or what a regressor predicts."""
    if "keras" in line:
        return np.asarray(model.predict(inputs, verbose=0))
    if "regressor" in line:
        return model.predict(inputs)[:, None]
    if "lambda" in line:
        return model(inputs)
    if not isinstance(model, nn.Module):
        return model.predict_proba(inputs)
    with torch.no_grad():
        answer = model.eval()(torch.from_numpy(inputs))
    if isinstance(answer, tuple):
        answer = answer[1]
    return np.asarray(getattr(answer, "logits", answer))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", MODELS)
def test_a_model_answers_as_its_direct_call_answers(line):
    known = names(line)
    model = value(line, known)
    inputs = IMAGES.numpy()
    if any(word in line for word in ("forest", "regressor", "table")):
        inputs = TABLE[:6].numpy()
    if "Bert" in line:
        inputs = torch.randint(1, 30, (6, 7), generator=torch.Generator().manual_seed(3)).numpy()
        opened = texts.opened(model.eval(), inputs)  # as a classifier of its embeddings
        asked, x = opened.module, opened.x
    else:
        adapted, x = adapt(model, torch.from_numpy(inputs), arrays=True, device="auto", output="logits")
        asked = adapted.model
    expected = asked_directly(line, model, inputs)
    with torch.no_grad():
        found = asked(x)
    np.testing.assert_allclose(found.double().numpy().reshape(expected.shape), expected, rtol=0, atol=1e-6)
