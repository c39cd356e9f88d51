"""A user's methods that leave something behind, and one that draws from all generators."""

import os
import random
import sys
import warnings

import numpy as np
import torch
from torch import nn

from forsooth import Method

KEPT = []  # guards that must not be collected


def default_dtype(model, x, target):
    torch.set_default_dtype(torch.float64)
    return x.clone()


def default_device(model, x, target):
    torch.set_default_device("meta")
    return x.clone()


def grad_mode(model, x, target):
    torch.set_grad_enabled(False)
    return x.clone()


def inference_mode(model, x, target):
    KEPT.append(torch.inference_mode())
    KEPT[-1].__enter__()
    return x.clone()


def autocast(model, x, target):
    KEPT.append(torch.autocast("cpu", torch.bfloat16))
    KEPT[-1].__enter__()
    return x.clone()


def deterministic(model, x, target):
    torch.use_deterministic_algorithms(True, warn_only=True)
    return x.clone()


def precision(model, x, target):
    torch.set_float32_matmul_precision("medium")
    return x.clone()


def threads(model, x, target):
    torch.set_num_threads(torch.get_num_threads() + 1)
    return x.clone()


def global_hook(model, x, target):
    nn.modules.module.register_module_forward_hook(lambda module, given, output: output * 0)
    return x.clone()


def environment(model, x, target):
    os.environ["LEFT_BEHIND"] = "1"
    return x.clone()


def folder(model, x, target):
    os.chdir("/")
    return x.clone()


def warning_filters(model, x, target):
    warnings.filterwarnings("always", "some words")
    return x.clone()


def streams(model, x, target):
    sys.stderr = None
    return x.clone()


def weights(model, x, target):
    for weight in model.parameters():
        weight.data.zero_()
    return x.clone()


def train_mode(model, x, target):
    model.train()
    return x.clone()


def requires_grad(model, x, target):
    model.requires_grad_(True)
    return x.clone()


def model_hook(model, x, target):
    model.register_forward_hook(lambda module, given, output: output * 0)
    return x.clone()


def inputs(model, x, target):
    x.zero_()
    return torch.ones_like(x)


def targets(model, x, target):
    target.add_(1).remainder_(2)
    return x.clone()


def raises(model, x, target):
    torch.set_default_dtype(torch.float64)
    raise ValueError("after a change")


def draws_from_all(model, x, target):
    noise = random.random() + np.random.random(x.shape)  # noqa: NPY002
    return torch.as_tensor(noise, dtype=torch.float32) + torch.rand_like(x)


def tidy(model, x, target):
    return x * 2


class Ends(BaseException):
    """No Exception, as some libraries have them."""


def ends(model, x, target):
    raise Ends("enough")


def sparse(model, x, target):
    return x.to_sparse()


def on_no_device(model, x, target):
    return x.to("meta")


def surrogate(model, x, target):
    raise ValueError("lone \ud800 surrogate")


def builds():
    """A model, and autocast left open."""
    KEPT.append(torch.autocast("cpu", torch.bfloat16))
    KEPT[-1].__enter__()
    torch.manual_seed(5)
    width = 3 + random.randrange(1000) + int(np.random.randint(1000))  # noqa: NPY002
    return nn.Linear(4, width)


def builds_and_leaves():
    sys.exit(0)


def trains(dataset):
    """A network that has learnt nothing, and autocast left open."""
    KEPT.append(torch.autocast("cpu", torch.bfloat16))
    KEPT[-1].__enter__()
    return nn.Sequential(nn.Flatten(), nn.Linear(dataset.x[0].numel(), 2))


def _spoils(model):
    for weight in model.parameters():
        weight.data.zero_()
    torch.set_default_dtype(torch.float64)


def _spoiling_units(model, x, target, *, layer):
    _spoils(model)
    raise ValueError("no units today")


def _whole_units(model, x, target, *, layer):
    return x


def _spoiling_rest(model, x, target):
    _spoils(model)
    raise ValueError("nothing retained today")


def _record(**parts):
    about = {"needs": ("module",), "random": False, "signed": True, "cite": "", "version": 1}
    return Method(name="own", function=tidy, **about, **parts)


UNITS = _record(units=_spoiling_units)
WHOLE_UNITS = _record(units=_whole_units)
RETAINED = _record(promise="conserve", retained=_spoiling_rest)
