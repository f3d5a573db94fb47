"""The seven effects that do nothing as an application, so that a worker can drive them."""

from collections.abc import Callable, Mapping

from bench.seven import STEPS, program
from engine.application import Adapter, Application
from engine.work import Answer, Work


class Seven(Application):
    """``do`` does the effects of each tool; ``tools`` has them by name."""

    name = "seven_steps"
    policy_files = {}

    def __init__(self, do: Callable[[Work], Answer]) -> None:
        self.tools = {f"t{i}": do for i in range(STEPS)}

    def source(self) -> bytes:
        """The program, which is in no file."""
        return program()

    def adapters(self) -> Mapping[str, Adapter]:
        """The same for each tool."""
        return self.tools
