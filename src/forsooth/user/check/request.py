"""What the user asks: a method of theirs."""

from dataclasses import dataclass
from typing import get_args

from forsooth.adapters.methods import MethodLike, NamedMethod, named
from forsooth.attributions import METHODS
from forsooth.records import Need, UsageError


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """The user's words. method: a path, a function, a Captum class, a Method, or a name of the catalogue."""

    method: MethodLike
    device: str = "cpu"
    seed: int = 0

    def named(self) -> NamedMethod:
        """The method that is checked; UsageError where it is none, or its record needs what nobody can lend."""
        try:
            found = named(self.method, METHODS, argument="method")
        except UsageError as error:
            if not isinstance(self.method, str) or ":" in self.method:
                raise
            hint = f"your own is package.module:function, e.g. {self.method}:my_function"
            raise UsageError(f"{error}; {hint}") from error
        known = get_args(Need)
        odd = sorted(set(found.method.needs) - set(known))
        if odd:
            raise UsageError(f"`needs` of {found.name} must be among {', '.join(known)}, got {', '.join(odd)}")
        return found
