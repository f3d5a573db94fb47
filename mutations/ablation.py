"""``make sabotage``: each attack is held, and gets through once its guards are gone.

Exit status: how many attacks got through a whole product, or were held by guards whose removal
changes nothing. Both are named in the table.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import django

from mutations.patching import MutationError, named

if TYPE_CHECKING:
    from sabotage.ablation.guards import Claim

STATUS_MAX = 100  # an exit status is one byte
JOBS = 2  # a copy waits for much of its time
HELD, BREACHED, BROKEN = "HELD", "BREACHED", "BROKEN"


class ClaimResult(NamedTuple):
    """The outcome of one claim's attack with its guards, and without them."""

    claim: "Claim"
    whole: str
    bare: str
    moved: str = ""
    fault: str = ""

    @property
    def good(self) -> bool:
        return not self.fault


def try_claim(claim: "Claim", *, layers: bool = False) -> ClaimResult:
    """Make the claim's attack twice: on a copy with all guards, and on one without the claim's.

    Where it has several forms, each is made without the guards, and the first with them.
    ``layers``: where there are several, also with each one of them left in its place alone.
    """
    from sabotage.ablation.copy_process import CopyError

    first, copy = claim.each[0], partial(_copied, claim)
    try:
        whole = copy(first, without=())
        bare, *others = [copy(each) for each in claim.each]
        kept = {
            guard: copy(first, without=[each for each in claim.without if each != guard])
            for guard in claim.without
            if layers and len(claim.without) > 1
        }
    except CopyError as error:
        return ClaimResult(claim, "", BROKEN, fault=str(error))
    idle = [guard for guard, outcome in kept.items() if deed(outcome) >= deed(bare)]
    faults = {
        "it gets through with every guard in place": word(whole) == BREACHED,
        "the removal of its guards changes nothing": HELD in map(word, (bare, *others)),
        f"the removal of {', '.join(idle)} changes nothing": bool(idle),
    }
    fault = next((text for text, wrong in faults.items() if wrong), "")
    return ClaimResult(claim, word(whole), word(bare), moved(bare), fault)


def deed(outcome: Mapping[str, Any]) -> tuple[bool, bool, int, int]:
    """How far an attack came: did something get out, was it taken, how often was it paid, and how
    many breaches were noticed: a payment to the wrong account is one more.
    """
    evidence = outcome["evidence"]
    paid = evidence["far_side"].get("succeeded", 0) if "paid" not in evidence else _all(evidence)
    taken = outcome["integrity"] == BREACHED, bool(outcome["got_through"])
    return *taken, int(paid), len(evidence["breaches"])


def _all(evidence: Mapping[str, Any]) -> int:
    """How many payments all runs of the attack made, where there were several."""
    return len(evidence["paid"])


def word(outcome: Mapping[str, Any]) -> str:
    """What the evidence says of an attack on a copy."""
    return BREACHED if outcome["got_through"] else HELD


def moved(outcome: Mapping[str, Any]) -> str:
    """The money that moved by Stripe's records, and the first breach."""
    evidence = outcome["evidence"]
    noticed = evidence["breaches"] or [evidence["headline"]]
    together = f"{_all(evidence)} by all its runs" if "paid" in evidence else evidence["payments"]
    return f"{together}; {noticed[0]}"


def lines(tries: Sequence[ClaimResult]) -> list[str]:
    """The table: attack, guards, with, without and the money that moved."""
    made = [("attack", "without the guards", "with", "without", "far side; what was noticed")]
    made += [
        (form(each.claim), ", ".join(each.claim.without), each.whole, each.bare, each.moved)
        for each in tries
    ]
    widths = [min(60, max(len(row[i]) for row in made)) for i in range(4)]
    return ["  ".join([*map(str.ljust, row, widths), row[4]]).rstrip() for row in made]


def form(claim: "Claim") -> str:
    """An attack in a few words."""
    values = (each if isinstance(each, list) else [each] for each in claim.when.values())
    said = ", ".join(" | ".join(map(str, each)) for each in values)
    return f"{claim.injector}: {said}".removesuffix(": ")


def _copied(claim: "Claim", params: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    """Attack a copy in a fresh home.

    A home's lock may outlive its copy for a moment: in the process that another thread starts,
    until that has become a program of its own.
    """
    from django.conf import settings

    from sabotage.ablation.copy_process import run_copy

    with TemporaryDirectory(prefix="copies-", dir=settings.NANOVM_DATA) as home:
        return run_copy(claim, params, home=Path(home), **given)


def _told(claim: "Claim", *, layers: bool) -> ClaimResult:
    """Try a claim, and say at once how it went."""
    found = try_claim(claim, layers=layers)
    print(f"{form(claim)}: {found.fault or 'as it should be'}", file=sys.stderr, flush=True)
    return found


def main(arguments: list[str]) -> int:
    """Try the claims, or those on the injectors that are named; the number of failures."""
    parser = argparse.ArgumentParser(prog="python -m mutations.ablation", description=__doc__)
    parser.add_argument(
        "--guards", type=Path, help="another file than sabotage/ablation/guards.toml"
    )
    parser.add_argument(
        "--layers", action="store_true", help="also leave each of several guards in its place alone"
    )
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many at once")
    parser.add_argument("injectors", nargs="*", help="injectors; all without")
    given = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from sabotage.ablation.guards import FILE, claims

    every = claims(given.guards or FILE)
    chosen = [each for each in every if not given.injectors or each.injector in given.injectors]
    if not chosen:
        raise MutationError(f"There is no claim on {' or '.join(given.injectors)}.")
    for claim in chosen:
        for guard in claim.without:
            named(guard)
    with ThreadPoolExecutor(max_workers=given.jobs) as pool:
        tries = list(pool.map(partial(_told, layers=given.layers), chosen))
    print("\n".join(lines(tries)))
    failed = [each for each in tries if not each.good]
    for each in failed:
        print(f"FAILED {form(each.claim)} ({', '.join(each.claim.without)}): {each.fault}.")
    print(f"{len(tries)} attacks, each with and without its guards; {len(failed)} failed.")
    return min(len(failed), STATUS_MAX)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
