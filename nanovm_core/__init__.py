"""The kernel decides what an event does to a run. It has no clock, no random numbers and no disk.

How a decision comes about. A run is one value, its **snapshot**: the state, the step, the slots
(facts, and references to what the vault holds), the call that was accepted, and what the run still
has to do outside. ``transition(program, snapshot, event, context)`` returns a **decision**: the
next snapshot, the drafts of the envelopes that record it, the effects that a shell has to carry
out, and the changes of budgets. The same arguments give the same decision on every machine and in
every year, so whoever has a run's events can repeat its history and compare the bytes.

Who may say what. An **event** is untrusted: an answer, a model's proposal, a person's command. What
only the shell knows (the time, who acts, budgets, past calls, revocations) is the **context**,
which no event can fill. The **program** is fixed before the run begins: its steps, tools, grants
and limits are checked as a whole when it is loaded, and the genesis names its hash. A model fills
one slot. It proposes a call, and the gate accepts it, holds it for a person, or refuses it with a
code.

Why an accepted call can be repeated. Its intent is recorded first, with a key derived from run,
step, tool and attempt. A shell that crashed does the effect again under the same key, and an answer
counts only under the key that is owed. What does not belong where the run stands is refused and
recorded.

Where to begin: ``core.lifecycle`` (the table of states), ``core.fsm`` (``transition``),
``core.gate`` (may this call be made?), ``core.envelope``. ``ExecutionVM`` runs a program in memory;
a shell of its own calls ``begin`` and ``transition``, as ``engine`` does;
``nanovm_core.judge.judge`` gives verdicts without a run. The public names are those of ``public``,
imported when the first of them is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanovm_core.public import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"nanovm_core has no public name {name!r}")
    import nanovm_core.public as public

    return getattr(public, name)
