"""The seven effects that do nothing as an application, so that a worker can drive them."""

from collections.abc import Callable, Mapping

from bench.seven import program, tools_of
from engine.application import Adapter, Application
from engine.work import Answer, Work


class Seven(Application):
    """``do`` does the effects of each tool; ``tools`` has them by name."""

    name = "seven_steps"
    policy_files = {}
    shared = False  # between a reader and a payer

    def __init__(self, do: Callable[[Work], Answer]) -> None:
        self.tools = dict.fromkeys(tools_of(shared=self.shared), do)

    def source(self) -> bytes:
        """The program, which is in no file."""
        return program(shared=self.shared)

    def adapters(self) -> Mapping[str, Adapter]:
        """The same for each tool."""
        return self.tools


class Shared(Seven):
    """The same between two agents, each with a process."""

    name = "shared_steps"
    shared = True
