"""``manage.py sabotage [NAME…]`` attacks fresh runs; the exit status counts."""

import argparse
import sys

from django.core.management.base import CommandError, CommandParser

from engine.management.prepared import PreparedCommand
from sabotage.campaign import InjectorOutcome, attack, services
from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import InjectionError

KNOWN = (*INJECTORS, *SCENARIOS)


class Command(PreparedCommand):
    """Exit status: how many injectors got through; 2 also for an unknown name."""

    help = "Attack fresh runs with the real queue, worker and Stripe counterpart."

    def add_arguments(self, parser: CommandParser) -> None:
        """NAME…, and how to say what became of them."""
        parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(KNOWN))
        parser.add_argument("--gallery", action="store_true", help="every attack of the gallery")
        parser.add_argument("--forms", action="store_true", help="each form of a gallery attack")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def perform(self, options: argparse.Namespace) -> None:
        """Fire, say, count."""
        for name in options.names:
            if name not in KNOWN:
                known = ", ".join(KNOWN)
                raise CommandError(
                    f"There is no injector {name!r}; there are {known}.", returncode=2
                )
        through = 0
        with services():
            for name, params in _meant(options):
                outcome = _fired(name, params)
                through += outcome.got_through
                self._say(outcome, as_json=options.json)
        sys.exit(through)

    def _say(self, outcome: InjectorOutcome, *, as_json: bool) -> None:
        if as_json:
            self.say_json(
                {
                    "injector": outcome.injector,
                    "verdict": outcome.verdict,
                    "rule": outcome.rule,
                    "integrity": outcome.integrity,
                    "evidence": outcome.evidence,
                    "control": outcome.control,
                    "careful": outcome.careful,
                }
            )
            return
        said = outcome.evidence
        form = ", ".join((outcome.injector, *map(str, said["params"].values())))
        self.stdout.write(
            f"{outcome.verdict} {outcome.rule} {said['headline']} ({form}) [{said['where']}]; "
            f"integrity {outcome.integrity}, {said['payments']}, the run ended {said['end']}; "
            f"an ordinary agent: {outcome.control['happened']}; "
            f"a careful agent: {outcome.careful['happened']}"
        )


def _meant(options: argparse.Namespace) -> list[tuple[str, dict[str, str]]]:
    """The named ones; none named: the five, or with ``--gallery`` the gallery's; each form."""
    more = SCENARIOS if options.gallery else ()
    names = [*(options.names or (() if more else INJECTORS)), *more]
    of = {name: each.injector.params for name, each in SCENARIOS.items() if options.forms}
    forms = {name: [{p.name: v} for p in found for v in p.choices] for name, found in of.items()}
    return [(name, params) for name in names for params in forms.get(name) or [{}]]


def _fired(name: str, params: dict[str, str]) -> InjectorOutcome:
    try:
        return attack(name, params)
    except InjectionError as error:
        raise CommandError(f"{name} could not be fired: {error}") from error
