"""The kernel's public names: values in, values out; no clock, no dice, no disk.

``ExecutionVM`` runs a program in memory. A shell of its own calls ``begin`` and ``transition``,
and seals what they decide; ``nanovm_core.judge.judge`` gives dry verdicts. The names are those
of ``public``, which is imported when the first of them is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanovm_core.public import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"nanovm_core has no public name {name!r}")
    import nanovm_core.public as public

    return getattr(public, name)
