"""Libraries that import torchvision for a class or two, where no torchvision fits the torch that is installed."""

import importlib.abc
import importlib.machinery
import sys
from contextlib import contextmanager, suppress
from types import ModuleType


class Names(type):
    """Classes of which every attribute is a name of its own, as those of an enumeration are."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class Hollow(ModuleType):
    """A module in which every name is a class that does nothing."""

    __path__: list = []  # noqa: RUF012

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Names(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torchvision":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Hollow(spec.name)

    def exec_module(self, module):
        module.__version__ = "0"


@contextmanager
def hollow():
    """While it lasts, torchvision can be imported; whoever really uses it finds nothing. A real one is left alone."""
    with suppress(ImportError, RuntimeError):
        import torchvision  # noqa: F401

        yield
        return
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
