"""Writes the golden histories, by hand: ``python -m tests.core.kit.write_histories``.

They are what the kernel said on the day they were written. Whoever writes them anew says why
the kernel may now say something else; no test calls this.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any

from tests.core.kit import golden_gate, golden_invoice
from tests.core.kit.builders import Play
from tests.core.kit.deployment import Deployment
from tests.core.kit.histories import FOLDER, recorded, rules

INVOICE: dict[str, Any] = {
    "program": {"file": "program.toml", "edits": []},
    "policy": {"file": "policy.toml", "edits": []},
}


def histories() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every history with its name, played now."""
    plays = {name: ("", play) for name, play in golden_invoice.PLAYS.items()}
    for name, (refused, play) in {**plays, **golden_invoice.REFUSED}.items():
        scene = Play(rules(INVOICE))
        play(scene)
        yield f"invoice_{name}", recorded(scene, _about(play, refused) | INVOICE)
    for name, script in golden_gate.SCRIPTS.items():
        policy = {"file": script.policy, "edits": []} if script.policy else None
        edits = [list(edit) for edit in script.edits]
        files: dict[str, Any] = {"program": {"file": "gate.toml", "edits": edits}, "policy": policy}
        run = Deployment(rules(files), risk=script.risk, frozen=script.frozen)
        script.play(run)
        yield f"gate_{name}", recorded(run, _about(script.play, script.refused) | files)


def _about(play: object, refused: str) -> dict[str, Any]:
    return {"what": inspect.getdoc(play), "refused_at_last": refused}


def main() -> None:
    """Write them, and take away those that nobody plays any more."""
    written = set()
    for name, history in histories():
        path = FOLDER / f"history_{name}.json"
        path.write_text(json.dumps(history, indent=1, ensure_ascii=True) + "\n")
        written.add(path)
    for path in sorted(set(FOLDER.glob("history_*.json")) - written):
        path.unlink()
    sys.stdout.write(f"{len(written)} histories written to {FOLDER}\n")


if __name__ == "__main__":
    main()
