"""The user's own methods: `package.module:name`, a Method record, a function, or an object of another library.

What no other process can find again (a lambda, a partial, an object) is kept here under a name of its own, and is asked
in this process alone.
"""

import dataclasses
import hashlib
import importlib
import importlib.metadata
import inspect
import re
import secrets
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

from torch import Tensor

from forsooth import foreign, surroundings
from forsooth.importing import look_here, staying
from forsooth.names import find, unknown
from forsooth.records import Method, UsageError

NOT_OWN = (*(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")), Path(__file__).parent)
CAPTUM = "captum.attr."  # where its classes live; known by name, since to import it takes a second
OFFERED = "forsooth.methods"  # the group of entry points in which packages offer methods
LIVE = "live"  # the module, as it were, of what is kept in this process alone
_kept: dict[str, Any] = {}  # by path


def method(name: str, known: Sequence[Method]) -> Method:
    """The method called `name`: one of the catalogue, or the user's `package.module:name`."""
    path = place_of(name, known)
    if ":" not in path:
        return find(path, known, argument="methods")
    return wrapped(load(path, argument="methods"), name=path)


def place_of(name: str, known: Sequence[Method], *, argument: str = "methods") -> str:
    """The `package.module:name` of a method that an installed package offers by that name; any other name as it is.

    A package offers its methods in its `pyproject.toml`, below [project.entry-points."forsooth.methods"].
    """
    if ":" in name or any(record.name == name for record in known):
        return name
    offered = entry_points()
    if name in offered:
        return offered[name]
    raise unknown(name, [*(record.name for record in known), *offered], argument=argument)


def entry_points() -> dict[str, str]:
    """What installed packages offer as methods: name -> `package.module:name`."""
    return {point.name: f"{point.module}:{point.attr}" for point in importlib.metadata.entry_points(group=OFFERED)}


def known(methods: Sequence[Any], catalogue: Sequence[Method]) -> None:
    """UsageError where a method is named that is not there; what is no name is left alone."""
    for name in methods:
        if isinstance(name, str):
            method(name, catalogue)


def load(path: str, *, argument: str) -> Any:
    """The object at `package.module:name`, also from the folder one stands in."""
    if path in _kept:
        return _kept[path]
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
    look_here()
    try:
        with surroundings.restored(), staying():  # a module may set torch's defaults when it is imported
            return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"`{argument}` names the module {name!r}, which cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        raise UsageError(f"`{argument}` names {path!r}, whose import raised {describe_error(error)}") from error


def wrapped(thing: Any, *, name: str) -> Method:
    """A Method around what the user gave: `function(model, x, target) -> map like x`, or an object of a library."""
    if isinstance(thing, Method):
        return dataclasses.replace(thing, name=name)  # the path is the name by which other processes find it
    if inspect.isclass(thing) and is_captums(thing):
        return _record(foreign.of_captum_class(thing), name)
    if is_captums(type(_owner(thing))):
        return _record(foreign.of_captum(_owner(thing), **getattr(thing, "keywords", {})), name)
    of_library = foreign.of_library(thing)
    if of_library is not None:
        return _record(of_library, name)
    if callable(thing):
        return _record(thing, name)
    raise UsageError(
        f"`methods` must name a function(model, x, target), a forsooth Method or a Captum class, got {name!r}, "
        f"which is {type(thing).__name__}"
    )


def is_captums(kind: type[Any]) -> bool:
    return any(base.__module__.startswith(CAPTUM) for base in kind.__mro__)


def _owner(thing: Any) -> Any:
    """The object whose method this is, also inside a partial; any other thing itself."""
    method = getattr(thing, "func", thing)
    return getattr(method, "__self__", thing)


def path_of(thing: Any) -> str:
    """The `package.module:name` at which any process finds the user's function or class again, as short as it can be.

    What has no such place is kept in this process under a name of its own.
    """
    name = getattr(thing, "__qualname__", None)
    home = getattr(thing, "__module__", None)
    if not isinstance(name, str) or not isinstance(home, str) or "<" in name:
        return keep(thing)
    if getattr(sys.modules.get(home), name, None) is not thing:
        return keep(thing)
    parents = [home[: place.start()] for place in re.finditer(r"\.", home)]
    for parent in parents:  # captum.attr:Saliency, and not captum.attr._core.saliency:Saliency
        if getattr(sys.modules.get(parent), name, None) is thing:
            return f"{parent}:{name}"
    return f"{home}:{name}"


def keep(thing: Any) -> str:
    """A path for what lives in this process alone; the same thing has the same one."""
    for path, other in _kept.items():
        if other is thing:
            return path
    inside = getattr(thing, "func", thing)  # of a partial
    name = getattr(inside, "name", None) or getattr(inside, "__name__", None) or type(inside).__name__
    name = re.sub(r"[^\w.-]", "", str(name))
    taken = sum(path.rpartition("-")[0] == f"{LIVE}:{name}" for path in _kept)
    path = f"{LIVE}:{name}-{taken + 1}"
    _kept[path] = thing
    return path


def is_live(name: str) -> bool:
    """Whether the method of that name lives in this process alone."""
    return name in _kept


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
    return keep(record)


def fingerprint(thing: Any) -> str:
    """A hash of the code of a user's function, of their modules that it imports, and of a record's settings.

    Edited code is run again, and so is a record with other settings, which may stand in another module than its code.
    """
    if any(other is thing for other in _kept.values()):
        return secrets.token_hex(8)  # what it holds cannot be read, so its cells serve no other run
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


def is_foreign(method: Method) -> bool:
    """Whether some of the code of a method is not of this package."""
    parts = [part for part in (method.function, method.units, method.retained) if part is not None]
    return is_users(method) or not all(_is_ours(part) for part in parts)


def _is_ours(function: Callable[..., Any]) -> bool:
    function = inspect.unwrap(getattr(function, "func", function))
    home = getattr(function, "__module__", None) or ""
    return home.startswith("forsooth.") and home != __name__


def is_movable(method: Method) -> bool:
    """Whether another process finds the user's method by its path: not what is in the running script or lives here."""
    return is_users(method) and not is_live(method.name) and not method.name.startswith("__main__:")


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
        function=foreign.giving_tensors(function),
        needs=("gradient", "module"),
        random=True,
        signed=True,
        cite="yours",
        version=1,
    )
