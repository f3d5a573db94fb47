"""The five injectors, one module each."""

from sabotage.kit.injector import Injector
from sabotage.kit.registry import Registry

INJECTORS: Registry[Injector] = Registry(
    __name__,
    "INJECTOR",
    ("tool_injection", "double_exec", "corrupt_hash", "skip_step", "reorder_steps"),
)
