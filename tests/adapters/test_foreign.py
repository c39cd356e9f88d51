"""Objects of other libraries give what they give when they are called directly."""

import functools
from types import SimpleNamespace

import captum.attr as captum
import numpy as np
import pytest
import torch
from torch import nn

from forsooth import plugins
from forsooth.adapters import outputs
from forsooth.adapters.models import adapt
from forsooth.records import UsageError


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 4)).eval()


NET, OTHER = network(0), network(1)
X = torch.randn(5, 1, 6, 6, generator=torch.Generator().manual_seed(2))
TARGET = torch.tensor([0, 1, 2, 3, 0])
OBJECTS = {
    "integrated gradients": lambda net: captum.IntegratedGradients(net, multiply_by_inputs=False),
    "guided backpropagation": captum.GuidedBackprop,
    "deep lift": lambda net: captum.DeepLift(net, eps=1e-8),
    "noise tunnel": lambda net: captum.NoiseTunnel(captum.IntegratedGradients(net)),
}


def asked(thing, model=NET):
    torch.manual_seed(7)
    return plugins.wrapped(thing, name="mine")(model, X, TARGET)


def directly(explainer, **keywords):
    torch.manual_seed(7)
    return explainer.attribute(X.clone().requires_grad_(), target=TARGET, **keywords).detach()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made_with", [NET, OTHER], ids=["its own model", "another model"])
@pytest.mark.parametrize("name", OBJECTS)
def test_a_captum_object_explains_the_model_that_is_asked_about(name, made_with):
    expected = directly(OBJECTS[name](NET))
    torch.testing.assert_close(asked(OBJECTS[name](made_with)), expected, rtol=0, atol=1e-6)
    assert expected.abs().max() > 0


def test_arguments_of_attribute_come_in_a_partial():
    window = {"sliding_window_shapes": (1, 2, 2), "strides": (1, 2, 2)}
    partial = functools.partial(captum.Occlusion(OTHER).attribute, **window)
    torch.testing.assert_close(asked(partial), directly(captum.Occlusion(NET), **window))


def test_a_captum_object_with_a_layer_is_not_moved_to_another_model():
    with pytest.raises(UsageError, match="with a layer of its own model: write a function"):
        asked(captum.GuidedGradCam(OTHER, OTHER[0]))


MISSING = [
    (
        captum.Occlusion,
        r"Occlusion needs sliding_window_shapes: write functools\.partial\(Occlusion\(…\)\.attribute, sl",
    ),
    (captum.DeepLiftShap(NET), r"DeepLiftShap needs baselines: write functools\.partial\(.*, baselines=…\)"),
    (
        captum.NoiseTunnel(captum.Occlusion(NET)),
        r"Occlusion needs sliding_window.*: write functools\.partial\(NoiseTunnel",
    ),
    (captum.GuidedGradCam, r"GuidedGradCam needs layer: write GuidedGradCam\(net, layer=…\)"),
    (captum.LayerGradCam(NET, NET[0]), r"shape \(5, 1, 6, 6\) of x, .* of its layer, \(5, 1, 4, 4\): write a function"),
    (captum.LayerIntegratedGradients(NET, NET[0]), r"LayerIntegratedGradients, which gives one of its layer"),
    (captum.NeuronGradient(NET, NET[0]), "got NeuronGradient, which explains a neuron"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("thing", "message"), MISSING)
def test_what_cannot_be_asked_says_what_to_write(thing, message):
    with pytest.raises(UsageError, match=message):
        asked(thing)


@pytest.mark.filterwarnings("ignore")
def test_what_the_refusal_says_to_write_can_be_asked():
    def enlarged(model, x, target):
        maps = captum.LayerGradCam(model, model[0]).attribute(x, target=target)
        return captum.LayerAttribution.interpolate(maps.sum(1, keepdim=True), x.shape[2:]).expand_as(x)

    assert asked(enlarged).shape == X.shape
    partial = functools.partial(captum.DeepLiftShap(NET).attribute, baselines=torch.zeros(2, 1, 6, 6))
    assert asked(partial).shape == X.shape


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("around", [lambda net: nn.Sequential(net, nn.Softmax(1)), outputs.Logits])
def test_a_captum_object_with_a_layer_is_asked_of_a_model_around_its_own(around):
    model = around(NET)
    expected = captum.GuidedGradCam(model, NET[0]).attribute(X.clone().requires_grad_(), target=TARGET)
    torch.testing.assert_close(asked(captum.GuidedGradCam(NET, NET[0]), model), expected.detach())


def test_a_captum_object_leaves_its_own_model_bound():
    explainer = captum.IntegratedGradients(OTHER)
    asked(explainer)
    assert explainer.forward_func is OTHER


def test_a_function_made_for_quantus():
    def explain_func(model, inputs, targets, **kwargs) -> np.ndarray:
        inputs = torch.as_tensor(inputs).clone().requires_grad_()
        output = model(inputs)[torch.arange(len(inputs)), targets].sum()
        return torch.autograd.grad(output, inputs)[0].double().numpy()

    maps = asked(explain_func)
    assert maps.dtype == X.dtype
    torch.testing.assert_close(maps, directly(captum.Saliency(NET), abs=False))


class Shap:
    """The face of an explainer of shap: values of all classes, in the last axis or as a list."""

    def __init__(self, model, listed):
        self.model = model
        self.listed = listed

    def shap_values(self, x):
        assert isinstance(x, torch.Tensor)
        values = np.stack([k * x.numpy() for k in range(4)], axis=-1)
        return list(np.moveaxis(values, -1, 0)) if self.listed else values


@pytest.mark.parametrize("listed", [False, True])
def test_an_explainer_of_shap_gives_the_values_of_the_target(listed):
    maps = asked(Shap(NET, listed))
    torch.testing.assert_close(maps, TARGET.view(-1, 1, 1, 1) * X)


class Output(nn.Module):
    """A network whose output is a record, a dict or a tuple, as libraries have it."""

    def __init__(self, kind):
        super().__init__()
        self.net = NET
        self.kind = kind

    def forward(self, x):
        logits = self.net(x)
        loss = logits.sum()
        kinds = {
            "record": SimpleNamespace(loss=loss, logits=logits),
            "dict": {"loss": loss, "hidden": x, "logits": logits},
            "tuple": (loss, logits, x),
        }
        return kinds[self.kind]


@pytest.mark.parametrize("kind", ["record", "dict", "tuple"])
def test_logits_are_found_in_what_a_model_gives(kind):
    adapted, x = adapt(Output(kind), X, arrays=False, device="auto", output="logits")
    torch.testing.assert_close(adapted.model(x), NET(X))
    assert f"{adapted.inner}net" in dict(adapted.module.named_modules())
    assert not adapted.module.training or Output(kind).training
    expected = directly(captum.Saliency(NET))
    torch.testing.assert_close(plugins.wrapped(captum.Saliency, name="mine")(adapted.module, x, TARGET), expected)


def test_a_regressor_has_one_output():
    model = SimpleNamespace(predict=lambda rows: rows.sum(1))
    adapted, x = adapt(model, X.flatten(1), arrays=True, device="auto", output="logits")
    torch.testing.assert_close(adapted.model(x), x.sum(1, keepdim=True))
    assert adapted.kind == "a regressor (SimpleNamespace)"
