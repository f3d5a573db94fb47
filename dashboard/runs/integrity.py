"""Whether anything got out of a run that was not sealed first: computed at every rendering."""

from dataclasses import dataclass
from uuid import UUID

from engine.models import AdapterCall, Run
from engine.queries.runs import RunHead
from sabotage.kit.integrity import record, sealed_intents


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrity:
    """The adapters' own records against the sealed intents, and the attacks that got through."""

    called: bool  # whether an intent is recorded, or a call
    unsealed: int  # calls whose key no sealed intent bears
    damaged: int  # intents that can be read no more: such a call's may be among them
    breaches: int  # attacks found to have got through

    @property
    def breached(self) -> bool:
        return self.unsealed > self.damaged or self.breaches > 0

    @property
    def why(self) -> str:
        if self.unsealed > self.damaged:
            return f"{self.unsealed} call{'s' * (self.unsealed != 1)} without a recorded intent"
        if self.breaches:
            return f"{self.breaches} attack{'s' * (self.breaches != 1)} got through"
        if self.unsealed:
            return "no unauthorized call found; the record is damaged"
        return "no unauthorized call" if self.called else "no call yet"


def of_run(run: RunHead, breaches: int) -> Integrity:
    """Read the records now; ``breaches`` attacks got through. The far side is not asked."""
    keys = list(AdapterCall.objects.filter(run_id=run.id).values_list("key", flat=True))
    intents, damaged = sealed_intents(run.id, UUID(run.workspace))
    recorded = {intent.key for intent in intents}
    unsealed = set(keys) - recorded
    if unsealed:  # before that is said, every envelope is read
        sealed = record(Run.objects.get(pk=run.id))
        unsealed -= {intent.key for intent in sealed.intents}
        damaged = sealed.damaged_intents
    return Integrity(
        called=bool(keys or recorded or damaged),
        unsealed=len(unsealed),
        damaged=damaged,
        breaches=breaches,
    )
