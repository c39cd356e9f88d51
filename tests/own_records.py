"""A user's records: one function, two opposite settings, and what has no name by which a process could find it."""

import functools

from forsooth.records import Method


def truth(model, x, target, *, truth, flip=False):
    return (truth != flip).to(x)[:, None]


def record(**settings) -> Method:
    needs = ("truth",)
    return Method("mine", truth, needs, random=False, signed=False, cite="me", version=1, settings=settings)


RIGHT = record()
WRONG = record(flip=True)
IN_A_LIST = [record(flip=False)]
PARTIAL = functools.partial(truth, flip=True)


class Explainer:
    def __call__(self, model, x, target):
        return x

    def map(self, model, x, target):
        return x


def renamed(model, x, target):
    return x


OTHER_NAME = renamed


def renamed(model, x, target):  # the first one is found under no name of its own
    return -x
