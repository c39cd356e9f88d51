"""The user's own methods: `package.module:name`, a Method record, a plain function or a Captum class."""

import dataclasses
import hashlib
import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import torch
from torch import Tensor

from forsooth.names import find, unknown
from forsooth.records import Method, UsageError

NOT_OWN = (*(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")), Path(__file__).parent)
STANDARD = tuple(sysconfig.get_path("stdlib") + end for end in ("", "/lib-dynload"))
CAPTUM = "captum.attr."  # where its classes live; known by name, since to import it takes a second


def method(name: str, known: Sequence[Method]) -> Method:
    """The method called `name`: one of the catalogue, or the user's `package.module:name`."""
    if ":" not in name:
        return find(name, known, argument="methods")
    return wrapped(load(name, argument="methods"), name=name)


def known(methods: Sequence[Any], catalogue: Sequence[Method]) -> None:
    """UsageError where a method is named that is not there; what is no name is left alone."""
    for name in methods:
        if isinstance(name, str):
            method(name, catalogue)


def load(path: str, *, argument: str) -> Any:
    """The object at `package.module:name`, also from the folder one stands in."""
    module_name, _, attribute = path.partition(":")
    if module_name.endswith(".py") or "/" in module_name:
        meant = f"{Path(module_name).stem}:{attribute}"
        raise UsageError(f"`{argument}` must be package.module:name and no file, got {path!r}; did you mean {meant}?")
    if not module_name or module_name.startswith(".") or not attribute:
        raise UsageError(f"`{argument}` must be package.module:function, got {path!r}")
    module = _module(module_name, path, argument=argument)
    if not hasattr(module, attribute):
        raise unknown(attribute, _offered(module), argument=argument)
    return getattr(module, attribute)


def _module(name: str, path: str, *, argument: str) -> ModuleType:
    """The user's module of that name; `path` is what they wrote."""
    _look_here()
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"`{argument}` names the module {name!r}, which cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        raise UsageError(f"`{argument}` names {path!r}, whose import raised {describe_error(error)}") from error


def _look_here() -> None:
    """Find modules in the working folder: a script beside the data is the usual place of a user's method.

    Behind the standard library: a file named `secrets.py` must not be taken for Python's own by other code.
    """
    here = str(Path.cwd())
    if here in sys.path:
        return
    standard = [place for place, entry in enumerate(sys.path) if entry in STANDARD]
    sys.path.insert(max(standard, default=-1) + 1, here)


def wrapped(thing: Any, *, name: str) -> Method:
    """A Method around what the user gave: `function(model, x, target) -> tensor like x`, or a Captum class."""
    if isinstance(thing, Method):
        return dataclasses.replace(thing, name=name)  # the path is the name by which other processes find it
    if inspect.isclass(thing) and any(base.__module__.startswith(CAPTUM) for base in thing.__mro__):
        return _record(_captum(thing), name)
    if callable(thing):
        return _record(thing, name)
    raise UsageError(
        f"`methods` must name a function(model, x, target), a forsooth Method or a Captum class, got {name!r}, "
        f"which is {type(thing).__name__}"
    )


def path_of(function: Any) -> str:
    """The `package.module:name` at which any process finds the user's function or Captum class again."""
    if not hasattr(function, "__qualname__"):
        raise UsageError(
            f"`methods` must hold functions with a name of their own, got a {type(function).__name__}, which other "
            "processes cannot find again: use def at module level, or a forsooth.Method with `settings`"
        )
    path = f"{function.__module__}:{function.__qualname__}"
    if "<" in path:
        raise UsageError(f"`methods` must hold functions with a name of their own, got {path}: use def at module level")
    if getattr(sys.modules.get(function.__module__), function.__qualname__, None) is not function:
        raise UsageError(
            f"`methods` must hold functions that stand in their module under their own name, got {path}, where "
            "something else or nothing is: use def at module level"
        )
    return path


def record_path(record: Method) -> str:
    """The `package.module:name` at which any process finds this very record, with its settings and needs.

    Its function's module is searched first, then the user's other modules, and last the script that runs, which other
    scripts do not share.
    """
    home = getattr(record.function, "__module__", "")
    own_modules = [name for name, module in sys.modules.items() if is_own(getattr(module, "__file__", None))]
    for module in [home, *sorted({*own_modules} - {"__main__"}), "__main__"]:
        for name, value in vars(sys.modules.get(module, object)).items():
            if value is record:
                return f"{module}:{name}"
    raise UsageError(
        f"`methods` must hold records that other processes can find again, got the forsooth.Method {record.name!r}, "
        "which no module holds under a name: write `name = forsooth.Method(…)` at module level, not in a function or a "
        "list"
    )


def fingerprint(thing: Any) -> str:
    """A hash of the code of a user's function, of their modules that it imports, and of a record's settings.

    Edited code is run again, and so is a record with other settings, which may stand in another module than its code.
    """
    function = thing.function if isinstance(thing, Method) else thing
    module = inspect.getmodule(function)
    try:
        source = inspect.getsource(module or function)
    except (OSError, TypeError):
        source = repr(function)  # typed at a prompt: no source to read
    parts = [source]
    if module is not None:
        parts += [inspect.getsource(other) for other in imported(module)]
    if isinstance(thing, Method) and thing.settings:
        parts.append(repr(dict(thing.settings)))
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:16]


def is_users(method: Method) -> bool:
    """Whether a method is the user's own: it goes by the path of its code."""
    return ":" in method.name


class Identity(TypedDict):
    """What tells a method from any other in the key of a task."""

    method: str
    version: int
    code: str


def identity(method: Method) -> Identity:
    """The name of a method, its version and, of a user's, a hash of its code."""
    code = ""
    if is_users(method):
        code = fingerprint(load(method.name, argument="methods"))
    return {"method": method.name, "version": method.version, "code": code}


def imported(module: ModuleType) -> list[ModuleType]:
    """The user's own modules that a module imports at its top, and those that they import, by name."""
    reached = {module.__name__: module}
    waiting = [module]
    while waiting:
        for other in _modules_in(waiting.pop()):
            if other.__name__ not in reached and is_own(getattr(other, "__file__", None)):
                reached[other.__name__] = other
                waiting.append(other)
    return [reached[name] for name in sorted(reached) if reached[name] is not module]


def _modules_in(module: ModuleType) -> Iterator[ModuleType]:
    """Modules that a module names at its top, and those that its names come from."""
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value
        elif isinstance(getattr(value, "__module__", None), str) and value.__module__ in sys.modules:
            yield sys.modules[value.__module__]


def is_own(file: str | None) -> bool:
    """Whether a source file is the user's: not installed, and no part of Python or of this package."""
    if file is None or not file.endswith(".py"):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in NOT_OWN)


def describe_error(error: BaseException) -> str:
    """An error of the user's code in a line, and where in their own files it came from."""
    words = f"{type(error).__name__}: {error}"[:500] + place(error)
    return words.encode(errors="replace").decode()  # what is no text could not be written


def place(error: BaseException) -> str:
    """Where in the user's own files an error came from: " (helper.py, line 3: return a / 0)"; empty if nowhere."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_own(frame.filename)]
    if not frames:
        return ""
    last = frames[-1]
    return f" ({Path(last.filename).name}, line {last.lineno}: {last.line})"


def _offered(module: ModuleType) -> list[str]:
    """Names in a user's module that can be meant: what can be called, and estimators, which are models."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [name for name, value in public.items() if callable(value) or hasattr(value, "predict_proba")]


def _record(function: Callable[..., Tensor], name: str) -> Method:
    return Method(
        name=name,
        function=function,
        needs=("gradient", "module"),
        random=True,
        signed=True,
        cite="yours",
        version=1,
    )


def _captum(kind: type[Any]) -> Callable[..., Tensor]:
    def attribute(model: torch.nn.Module, x: Tensor, target: Tensor) -> Tensor:
        return kind(model).attribute(x.clone().requires_grad_(), target=target).detach()

    return attribute
