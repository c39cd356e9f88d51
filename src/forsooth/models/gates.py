"""What a network must reach to be explained, and what is said of one that does not."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Gate:
    """What a model must reach to be explained.

    accuracy     the least on the test split
    max_p_value  the largest probability to be so accurate without the artefact
    """

    accuracy: float
    max_p_value: float = field(metadata={"key": "luck"})

    def objection(self, accuracy: float, p_value: float, *, p_star: float) -> str:
        """Why a model of this accuracy proves nothing; empty if it counts.

        Where p* is 1 no accuracy can prove that the artefact is used: there a good model is enough.
        """
        if p_star < 1 and p_value > self.max_p_value:
            return f"accuracy {accuracy:.1%} could be chance at p* = {p_star:.0%}: it need not use the artefact"
        if accuracy < self.accuracy:
            return below_gate(accuracy, self.accuracy)
        return ""


def below_gate(accuracy: float, gate: float) -> str:
    return f"accuracy {accuracy:.1%}, below the gate of {gate:.0%}"
