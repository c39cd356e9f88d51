"""The units of an intermediate layer as players: a network cut in two behind one of its modules."""

import operator
from collections.abc import Callable

from torch import Tensor, fx, nn

from forsooth.names import unknown
from forsooth.records import UsageError

Half = Callable[[Tensor], Tensor]
WRITING = (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.setitem)


def split(module: nn.Module, layer: str) -> tuple[Half, Half]:
    """The part of a network up to a layer, and the part behind it: tail(head(x)) is module(x).

    module   in eval mode, from one tensor x (n, *shape) to (n, classes)
    layer    dotted name of a module inside it
    returns  head: x -> (n, c, *space), what the layer gives; tail: h (n, c, *space) -> (n, classes)

    To explain the units, play on h with the tail as the model and `pixels(h.shape[1:])` as players: a unit is a place
    with all its channels. The network is traced, and the tail computes only what comes after the layer. Where it
    cannot be traced, or what was there before the layer is read behind it, the tail runs the whole network and puts
    h in place of the layer's output: right, but as slow as the network, and for one input at a time.
    """
    names = [name for name, _ in module.named_modules() if name]
    if layer not in names:
        raise unknown(layer, names, argument="layer")
    halves = traced_halves(module, layer)
    if halves is not None:
        return halves
    hooked = Hooked(module, layer)
    return hooked.head, hooked.tail


def traced_halves(module: nn.Module, layer: str) -> tuple[Half, Half] | None:
    """Both parts of the traced network; None where it cannot be traced, or its tail reads the input as well."""
    graph = traced(module, layer)
    if graph is None:
        return None
    calls = [node for node in graph.nodes if node.op == "call_module" and node.target == layer]
    once(layer, len(calls))
    end = graph.output_node().args[0]
    if not isinstance(end, fx.Node) or any(node.op == "placeholder" for node in needed(end, given=calls[0])):
        return None
    return cut(module, graph, end=calls[0]), cut(module, graph, end=end, given=calls[0])


def once(layer: str, calls: int) -> None:
    """An error unless the layer is called exactly once, since only then it has one output."""
    if calls != 1:
        raise UsageError(f"`layer` must be called once in a forward, got {layer!r}, which is called {calls} times")


class LayerTracer(fx.Tracer):
    """A tracer that takes one layer as a whole, so that its output is a node of the graph."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self.layer = layer

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return module_qualified_name == self.layer or super().is_leaf_module(m, module_qualified_name)


def traced(module: nn.Module, layer: str) -> fx.Graph | None:
    """The graph of the module; None where its forward depends on values, or hides the layer inside a leaf."""
    try:
        graph = LayerTracer(layer).trace(module)
    except Exception:  # whatever a forward says to a proxy; a fault of the module itself comes again when it runs
        return None
    leaves = {str(node.target) for node in graph.nodes if node.op == "call_module"}
    if any(layer.startswith(f"{leaf}.") for leaf in leaves):
        return None
    return graph


def needed(end: fx.Node, *, given: fx.Node | None) -> set[fx.Node]:
    """The node `end` and all that its value is made from, when the value of `given` is there."""
    nodes = {end}
    waiting = [end]
    while waiting:
        new = set(waiting.pop().all_input_nodes) - nodes - {given}
        nodes |= new
        waiting.extend(new)
    return nodes


def cut(module: nn.Module, graph: fx.Graph, *, end: fx.Node, given: fx.Node | None = None) -> Half:
    """The part of the graph that makes the value of `end`, from the input or from the value of `given`."""
    nodes = [node for node in graph.nodes if node in needed(end, given=given)]
    new = fx.Graph()
    copies = {}
    if given is not None:
        copies[given] = new.placeholder("h")
        if any(writes(module, node) for node in nodes):  # into the caller's h, were it not a copy
            copies[given] = new.call_method("clone", (copies[given],))
    for node in nodes:
        copies[node] = new.node_copy(node, lambda old: copies[old])
    new.output(copies[end])
    return fx.GraphModule(module, new)


def writes(module: nn.Module, node: fx.Node) -> bool:
    """Whether a node may write into what it reads."""
    if node.op == "call_module":
        leaf = module.get_submodule(str(node.target))
        return any(getattr(inner, "inplace", False) for inner in leaf.modules())
    name = getattr(node.target, "__name__", "")
    if isinstance(node.target, str):
        name = node.target
    return node.target in WRITING or bool(node.kwargs.get("inplace")) or (name.endswith("_") and name[-2:] != "__")


class Hooked:
    """The two parts of a network that cannot be cut: both run all of it, on the input last given to `head`."""

    def __init__(self, module: nn.Module, layer: str) -> None:
        self.module = module
        self.layer = layer
        self.x: Tensor | None = None
        self.h: Tensor | None = None

    def head(self, x: Tensor) -> Tensor:
        """The layer's output (n, c, *space) for x (n, *shape), which is kept."""
        seen: list[Tensor] = []
        self.run(x, lambda _, __, output: seen.append(output.clone()))
        once(self.layer, len(seen))
        self.x = x
        self.h = seen[0]
        return self.h

    def tail(self, h: Tensor) -> Tensor:
        """The network's output (n, classes) when the layer gives h (n, c, *space) for the kept input."""
        if self.x is None:
            raise UsageError("`head` must be called before `tail`, since the tail reads the input as well")
        x = self.x
        if h is not self.h:
            if len(x) != 1:
                why = f"the layer {self.layer!r}, since what is behind it reads the input too"
                raise UsageError(f"`x` must be one input at a time for {why}, got {len(x)}")
            x = x.expand(len(h), *x.shape[1:])
        return self.run(x, lambda _, __, output: h.clone())

    def run(self, x: Tensor, hook: Callable[[nn.Module, object, Tensor], Tensor | None]) -> Tensor:
        """The network's output for x (n, *shape) with a hook on the layer."""
        handle = self.module.get_submodule(self.layer).register_forward_hook(hook)
        try:
            return self.module(x)
        finally:
            handle.remove()
