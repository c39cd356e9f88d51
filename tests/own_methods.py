"""A user's methods, good and bad."""

import torch

from forsooth.records import Method


def gradient(model, x, target):
    x = x.clone().requires_grad_()
    model(x)[torch.arange(len(x)), target].sum().backward()
    return x.grad


def raises(model, x, target):
    raise ValueError("no map today")


def leaves(model, x, target):
    raise SystemExit(3)


def wrong_shape(model, x, target):
    return torch.zeros(len(x), 3)


def no_tensor(model, x, target):
    return None


def an_array(model, x, target):
    return x.numpy()


def not_a_number(model, x, target):
    maps = torch.ones_like(x)
    maps[0] = float("nan")
    return maps


def says_nothing(model, x, target):
    return torch.zeros_like(x)


def changes_its_input(model, x, target):
    x.zero_()
    return torch.ones_like(x)


def draws(model, x, target):
    return torch.rand_like(x)


NOT_CALLABLE = 7
RECORD = Method(name="mine", function=gradient, needs=("gradient",), random=False, signed=True, cite="me", version=3)
