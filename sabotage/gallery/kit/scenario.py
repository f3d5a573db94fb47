"""What a piece of the gallery is: an injector, and the fresh run that it is fired at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.models import Run, Workspace
from sabotage.kit.injector import Injector, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """An attack with its own stage.

    ``stage`` makes the run that it is fired at: fresh, with nothing begun. ``alone``: it needs
    accounts that nobody else uses, or several logs, so its runs lie in a workspace that is made
    for this one shot; ``why_alone`` says so on the page.
    """

    injector: Injector
    make_run: Callable[[Workspace, Mapping[str, Value]], Run]
    why_alone: str = ""

    @property
    def name(self) -> str:
        return self.injector.name

    @property
    def alone(self) -> bool:
        return bool(self.why_alone)
