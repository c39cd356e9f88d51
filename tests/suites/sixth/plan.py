"""Train every network, then ask every method."""

from forsooth.suites.needle import tasks
from forsooth.suites.needle.data import DataSpec
from forsooth.suites.needle.settings import Settings

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.engine import make_task
from forsooth.records import Choice, Method, Metric, Plan, Task
from forsooth.scores.localisation import IMA


def plan(settings: Settings, choice: Choice) -> Plan:
    names.check_factors(choice.only, ("columns", "model"))
    methods = [plugins.method(name, METHODS) for name in choice.methods or settings.methods]
    work: list[Task] = []
    for columns in names.kept([str(number) for number in settings.columnss], choice.only, "columns"):
        spec = DataSpec(int(columns), seeds.derive(choice.seed, "data"))
        for net in names.kept(settings.models, choice.only, "model"):
            for number in range(settings.trainings):
                trained = training_task(spec, net, number, choice)
                work += [trained, *(explaining_task(method, spec, trained, settings, choice) for method in methods)]
    return Plan(tasks=tuple({task.key: task for task in work}.values()))


def training_task(spec: DataSpec, net: str, number: int, choice: Choice) -> Task:
    seed = seeds.derive(choice.seed, "training", number)
    arguments = {"spec": spec, "net": net, "number": number, "seed": seed, "device": choice.device}
    return make_task(tasks.train, arguments, name=f"train {net} {number}")


def explaining_task(method: Method, spec: DataSpec, trained: Task, settings: Settings, choice: Choice) -> Task:
    ask = tasks.Ask(**plugins.identity(method), samples=settings.samples, seed=choice.seed, device=choice.device)
    return make_task(tasks.explain, {"spec": spec, "ask": ask}, [trained], name=f"explain: {method.name}")


def metrics(settings: Settings) -> tuple[Metric, ...]:
    return (IMA,)
