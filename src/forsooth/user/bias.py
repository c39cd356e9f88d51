"""Which explanation may I trust on my model? M_bias of every method on the user's own model and inputs."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from forsooth import chunks, plugins, seeds, store
from forsooth.attributions import METHODS, cam
from forsooth.engine import Progress, execute, known_as, make_task
from forsooth.games import players
from forsooth.games.shapley import Estimate, exact, permutation
from forsooth.progress import Silent
from forsooth.records import Cell, Method, Task, UsageError
from forsooth.scores.promises import completeness_gap
from forsooth.suites import explain
from forsooth.suites.bias import anchor as anchors
from forsooth.user import answer, inputs, models, subject
from forsooth.user.answer import BiasResult
from forsooth.user.subject import Asked, Subject

__all__ = ["Asked", "BiasResult", "bias"]

BLACK_BOX = ("kernel_shap", "lime", "shapley_sampling", "pfi")
OPENED = ("gradient", "gradient_x_input", "smooth_grad", "integrated_gradients", "guided_backprop", "lrp", "deep_lift")
BACKGROUNDS = ("deep_shap", "gradient_shap")
NULLS = ("random", "constant")
AT_ONCE = 8  # inputs played in one task, so that little is lost when the work is stopped
BACKGROUND = 100  # inputs handed to methods as background
SQUARE = 5_000  # most players of methods that solve a system of players × players
VERSION = 2


@dataclass(frozen=True)
class Asker:
    """A method to be judged: its record, and whether the user wrote it as a plain function."""

    name: str
    method: Method
    own: bool


def bias(
    asked: Asked,
    methods: Iterable[str | Method | Callable[..., Tensor]] = (),
    *,
    out: Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> BiasResult:
    """M_bias of every method on the model and inputs that are asked about. See `forsooth.bias`."""
    methods = tuple(methods)
    subject.known(asked)  # words and files come first: to build the model may take long
    inputs.batch(asked.inputs, "inputs")
    plugins.known(methods, METHODS)
    thing = models.given(asked.model)
    with models.in_eval(thing):
        about = subject.prepared(thing, asked)
        askers = chosen(methods, about)
        skipped = {asker.name: unable(asker, about) for asker in askers}
        able = [asker for asker in askers if not skipped[asker.name]]
        folder = None if out is None else writable(out)
        words = asked.words()
        if folder is not None and words is not None and all(isinstance(m, str) for m in methods):
            tasks = planned(about, words, able)
            cells = store.Store(folder / "store")
            execute(list(tasks.values()), cells, workers=workers, progress=progress or Silent())
            subject.forget()
            done = {key: cells.read(task.key) for key, task in tasks.items()}
        else:
            done = here(about, able, progress or Silent())
    result = answer.judged(about, done, {name: reason for name, reason in skipped.items() if reason}, names_of(askers))
    if folder is not None:
        store.write_atomically(folder / "bias.csv", result.rows.to_csv(index=False).encode())
        store.write_atomically(folder / "bias.md", result.markdown().encode())
    return result


def writable(out: Path) -> Path:
    """The folder, if it is new, empty or an earlier answer."""
    return store.free_folder(out, ("store", "bias.csv"), "answer")


def names_of(askers: Sequence[Asker]) -> dict[str, bool]:
    """name -> whether it ignores the model, in the order in which they were asked."""
    return {asker.name: asker.method.null for asker in askers}


def chosen(methods: Iterable[str | Method | Callable[..., Tensor]], about: Subject) -> list[Asker]:
    """The methods to judge, and behind them the nulls, which are always judged."""
    defaults = (*OPENED, *BACKGROUNDS, *BLACK_BOX) if about.open else BLACK_BOX
    defaults = ("grad_cam", *defaults) if about.head is not None and about.open else defaults
    askers = [asker_of(method) for method in (tuple(methods) or defaults)]
    names = [asker.name for asker in askers]
    if len(set(names)) < len(names) or answer.END in names:
        raise UsageError(f"`methods` must have names of their own, other than {answer.END}, got {', '.join(names)}")
    return [*askers, *(asker_of(name) for name in NULLS if name not in names)]


def asker_of(method: str | Method | Callable[..., Tensor]) -> Asker:
    if isinstance(method, str):
        own = ":" in method and not isinstance(plugins.load(method, argument="methods"), Method)
        return Asker(method, plugins.method(method, METHODS), own)
    if isinstance(method, Method):
        return Asker(method.name, method, own=False)
    name = getattr(method, "__name__", type(method).__name__)
    return Asker(name, plugins.wrapped(method, name=name), own=True)


def unable(asker: Asker, about: Subject) -> str:
    """Why the method cannot be asked here; empty where it can. A user's function is always tried."""
    name, needs, shape = asker.name, asker.method.needs, about.references.shape[1:]
    if "truth" in needs:
        return f"{name} needs a ground truth, and there is none"
    if asker.own:
        return ""
    if not about.open and {"gradient", "module"} & set(needs):
        what = about.kind if about.module is None else "a network that cannot be cut behind its layer"
        return f"{name} needs a torch module, and the model is {what}"
    if "layer" in needs and (name != "grad_cam" or about.head is None):
        return f"{name} reads a layer: it can be judged on the units of one, as grad_cam with players units:LAYER"
    image = len(shape) > 1 and about.head is None
    if not image and (name.startswith(("sobel", "laplace")) or "superpixels" in name or "quickshift" in name):
        return f"{name} reads an image, and these are {about.noun}"
    if name.startswith(("kernel_shap", "lime")) and "players" in keywords(asker) and about.count > SQUARE:
        return f"{name} solves a system of players × players, too large for {about.count:,} {about.noun}: take grid:N"
    return ""


def keywords(asker: Asker) -> set[str]:
    return set(inspect.signature(asker.method.function).parameters)


def pieces(about: Subject) -> list[tuple[str, int, int]]:
    """The games, a few inputs at a time: for the anchor and, where it is sampled, for the other end of the scale."""
    starts = range(0, len(about.x), AT_ONCE)
    roles = ("anchor",) if about.exact else ("anchor", answer.END)
    return [(role, start, min(start + AT_ONCE, len(about.x))) for role in roles for start in starts]


def planned(about: Subject, words: Mapping[str, Any], askers: Sequence[Asker]) -> dict[Any, Task]:
    """A task for every piece of games and for every method, by the place of its answer."""
    shared = {"words": dict(words), "digest": about.digest}
    tasks: dict[Any, Task] = {}
    for role, start, stop in pieces(about):
        arguments = {**shared, "role": role, "start": start, "stop": stop}
        tasks[role, start] = make_task(play_task, arguments, name=title(role, start, stop), version=VERSION)
    for asker in askers:
        thing = plugins.load(asker.name, argument="methods") if ":" in asker.name else None
        code = "" if thing is None else plugins.fingerprint(thing)
        arguments = {**shared, "method": asker.name, "version": asker.method.version, "code": code}
        tasks["method", asker.name] = make_task(ask_task, arguments, name=f"explain: {asker.name}", version=VERSION)
    return tasks


def here(about: Subject, askers: Sequence[Asker], progress: Progress) -> dict[Any, Cell]:
    """The same work in this process, for a model that lives in it."""
    done: dict[Any, Cell] = {}
    games = pieces(about)
    progress.start(total=len(games) + len(askers), done=0)
    for role, start, stop in games:
        name = title(role, start, stop)
        progress.doing([name])
        done[role, start] = play(about, role, start, stop)
        progress.step(name)
    for asker in askers:
        name = f"explain: {asker.name}"
        progress.doing([name])
        done["method", asker.name] = ask(about, asker)
        progress.step(name)
    return done


def title(role: str, start: int, stop: int) -> str:
    return f"Shapley values{'' if role == 'anchor' else ', again'}: inputs {start} to {stop - 1}"


@known_as("user.bias_play")
def play_task(*, words: dict[str, Any], digest: str, role: str, start: int, stop: int) -> Cell:
    return play(subject.again(words, digest), role, start, stop)


@known_as("user.bias_explain")
def ask_task(*, words: dict[str, Any], digest: str, method: str, version: int, code: str) -> Cell:
    """`version` and `code` change the key with the method."""
    return ask(subject.again(words, digest), asker_of(method))


def play(about: Subject, role: str, start: int, stop: int) -> Cell:
    """Shapley values of the inputs `start` … `stop` - 1; all inputs walk the same permutations."""
    parts = [estimate(about, role, first, min(first + about.step, stop)) for first in range(start, stop, about.step)]
    whole = dataclasses.replace(
        parts[0],
        values=torch.cat([part.values for part in parts]),
        error=torch.cat([part.error for part in parts]),
        groups=torch.cat([part.groups for part in parts]),
    )
    tensors = anchors.packed(whole, torch.arange(start, stop))
    return Cell(tensors=tensors, facts={"permutations": whole.permutations})


def estimate(about: Subject, role: str, start: int, stop: int) -> Estimate:
    played = about.game(start, stop)
    if about.exact:
        return exact(played)
    drawn = seeds.generator(about.asked.seed, role, "permutations")
    return permutation(played, permutations=int(about.asked.permutations), generator=drawn)


def ask(about: Subject, asker: Asker) -> Cell:
    """What a method says of every player, (n, players), or why it says nothing. The others go on whatever it does."""
    try:
        with explain.lent_randomness(seeds.derive(about.asked.seed, asker.name)):
            maps = maps_of(about, asker)
    except (Exception, SystemExit) as error:  # a user's method may raise anything, or leave
        return Cell(facts={"failed": True, "status": "error", "message": plugins.describe_error(error)})
    wanted = (len(about.x), *about.references.shape[1:])
    cam_map = asker.name == "grad_cam" and isinstance(maps, Tensor) and maps.shape[2:] == wanted[2:]
    if not isinstance(maps, Tensor) or not (tuple(maps.shape) == wanted or cam_map):
        came = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        message = f"the map must have the shape of x {wanted}, got {came}"
        return Cell(facts={"failed": True, "status": "wrong shape", "message": message})
    labels, count = players.seats(maps, about.labels)
    channels = about.asked.channels if asker.method.values == "derivative" else "sum"
    reduced = players.collect(maps.detach(), labels, count, channels=channels)  # type: ignore[arg-type]
    tensors = {"players": reduced.cpu()}
    if asker.method.promise and tuple(maps.shape) == wanted:
        tensors["gap"] = completeness_gap(maps, promised(about, asker)).cpu()
    return Cell(tensors=tensors, facts={"status": "ok", "message": ""})


def promised(about: Subject, asker: Asker) -> Tensor:
    """What the maps of a method promise to sum to, (n,), with the baseline of the game where it takes one."""

    def of(places: Tensor) -> Tensor:
        x, target, stands = about.part(int(places[0]), int(places[-1]) + 1)
        ready = asker.method if asker.own else explain.with_game(asker.method, {"baseline": stands})
        return explain.promised(ready, about.model, x, target, background=about.references[:BACKGROUND])

    return chunks.over(of, torch.arange(len(about.x)), size=about.step)


def maps_of(about: Subject, asker: Asker) -> Any:
    """The maps of all inputs, in slices that fit the memory. Draws go by the input, never by the slice."""
    method = asker.method

    def of(places: Tensor) -> Any:
        start, stop = int(places[0]), int(places[-1]) + 1
        x, target, stands = about.part(start, stop)
        if asker.name == "grad_cam":
            assert about.module is not None and about.layer is not None
            return cam.grad_cam_units(about.module, about.x[start:stop], target, layer=about.layer)[:, None]
        game = {"baseline": stands, "players": about.labels.to(x.device)}
        ready = method if asker.own else explain.with_game(method, game)
        return ready(
            about.model,  # type: ignore[arg-type]
            x.clone(),  # a user's method may write into it
            target.clone(),
            background=about.references[:BACKGROUND],
            fit=about.references,
            layer=about.layer,
            **explain.draws(about.asked.seed, method.name, places),
        )

    # A user's method or null sees all inputs at once, since it may fit on them or draw for all of them in turn.
    whole = method.null or asker.own or "fit" in method.needs
    size = len(about.x) if whole else max(1, explain.VALUES_AT_ONCE // about.references[0].numel())
    places = torch.arange(len(about.x))
    if whole and (method.null or about.step >= len(about.x)):
        return as_tensor(of(places), about)
    return chunks.over(lambda part: as_tensor(of(part), about), places, size=max(1, min(size, about.step)))


def as_tensor(maps: Any, about: Subject) -> Any:
    """Maps on the device of x; numpy arrays are as welcome as tensors, and anything else is left as it is."""
    return models.as_tensor(maps, about.x) if hasattr(maps, "__array__") and not isinstance(maps, Tensor) else maps
