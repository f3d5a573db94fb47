"""Whether a run had an effect that was not sealed first: computed at every rendering."""

from dataclasses import dataclass

from engine.queries.record import RunRecord
from sabotage.kit.integrity import record as read_again


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


def of_run(record: RunRecord, breaches: int) -> Integrity:
    """Compare the records; ``breaches`` attacks got through. The far side is not asked."""
    intents = [entry for entry in record.entries if entry.kind == "intent"]
    sealed = {each.row.key for each in intents if each.whole and each.row.kind == "intent"}
    damaged = sum(not each.whole for each in intents)
    unsealed = {call.key for call in record.calls} - sealed
    if unsealed:  # before that is said, every envelope is read, whatever the database calls it
        again = read_again(record.stored)
        unsealed -= {intent.key for intent in again.intents}
        damaged = again.damaged_intents
    return Integrity(
        called=bool(record.calls or intents),
        unsealed=len(unsealed),
        damaged=damaged,
        breaches=breaches,
    )
