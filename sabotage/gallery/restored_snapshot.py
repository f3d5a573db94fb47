"""``restored_snapshot``: restores an old copy of the database, to undo what happened since.

It uses a throw-away data folder with its own database, keys and log, and an operator's commands.
"""

import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from nanovm_core.core.envelope import body_of
from sabotage.gallery.kit import fixture, invoices, outcomes
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit import throwaway
from sabotage.kit.code_locations import ROOT, named_in
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Target, choice
from sabotage.kit.stripe_view import payments_of

NAME = "restored_snapshot"
SECONDS_MAX = 120
ACCOUNT = "sk_test_nanovm_restored"  # in ours the controller finds a payment that no log allowed
DATABASE = "app.sqlite3"
CODE = re.compile(r"\b[A-Z]{3}-\d{3}\b")
SIGNER = "engine/evidence/signer/checkpoints.py"  # by its text: no attack imports the signer
DECIDES, MARK = "_continued", "NO_EXTENSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A command's exit status, its output, and the rule that its error message names."""

    status: int
    said: str
    rule: str


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A temporary data folder, and the commands that are run on it."""

    folder: Path

    def run(self, *arguments: str) -> Result:
        """One command, in a process of its own, to its end."""
        done = subprocess.run(  # noqa: S603 - our own command
            throwaway.command("manage", *arguments),
            cwd=ROOT,
            env=_environment(self.folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        named = CODE.search(done.stderr)
        return Result(status=done.returncode, said=done.stdout, rule=named.group() if named else "")

    def done(self, *arguments: str) -> Result:
        """One command that has to succeed."""
        answer = self.run(*arguments)
        if answer.status != 0:
            text = f"`{arguments[0]}` failed in the throw-away folder ({answer.rule or 'no rule'})."
            raise InjectionError(f"{text} Check the disk and Stripe, then fire again.")
        return answer

    def sign(self, name: str) -> Result:
        """Ask the signer for a checkpoint over the log as it is now."""
        return self.run("export_bundle", "--log", "-o", str(self.folder / name))

    def calls(self) -> dict[str, object]:
        """What its adapters recorded of their calls, and how many no intent was sealed for."""
        database = f"{(self.folder / DATABASE).as_uri()}?mode=ro"
        with closing(sqlite3.connect(database, uri=True)) as opened:
            made = opened.execute("SELECT key, tool FROM pipeline_adaptercall").fetchall()
            rows = opened.execute("SELECT bytes FROM pipeline_envelope WHERE kind = 'intent'")
            sealed = {body_of(data).get("idempotency_key") for (data,) in rows}
        return {
            "calls": sum(key not in sealed for key, _ in made),
            "calls_since": dict(Counter(tool for _, tool in made)),
        }

    def copy(self, to: str) -> None:
        """Copy the database, which no process has open."""
        shutil.copy(self.folder / DATABASE, self.folder / to)

    def put_back(self, copy: str) -> None:
        """Put a copy in the place of the database."""
        for left in self.folder.glob(f"{DATABASE}-*"):
            left.unlink()
        shutil.copy(self.folder / copy, self.folder / DATABASE)


def inject(target: Target) -> Fired:
    """Pay and sign, copy, go on and sign; put the copy back, and ask for a signature once more."""
    with tempfile.TemporaryDirectory(prefix="nanovm-restored-") as folder:
        house = DataFolder(Path(folder))
        document = house.folder / "plain.pdf"
        document.write_bytes(invoices.plain_invoice())
        paid = json.loads(house.done("run_invoice", str(document), "--json").said)
        house.done("export_bundle", "--log", "-o", str(house.folder / "first.zip"))
        house.copy("old.copy")
        GONE_ON[str(target.values["undo"])](house, str(paid["run"]))
        later = house.done("export_bundle", "--log", "-o", str(house.folder / "second.zip"))
        calls = house.calls()
        house.put_back("old.copy")
        asked = house.sign("third.zip")
        audit = house.run("fsck", "--json")
    return Fired(
        facts={
            "where_it_happened": "a data folder made for this shot, and thrown away",
            "undo": str(target.values["undo"]),
            "signed_before": _size(later),
            "signed_after_the_restore": asked.status == 0,
            "signed_size_after": _size(asked),
            "refused_by": asked.rule,
            "fsck_exit_status": audit.status,
            "fsck_found": _codes(audit),
            **calls,
            "paid": outcomes.paid(
                str(paid["code"]), payments_of(str(paid["run"]), target.run.created_ms, ACCOUNT)
            ),
        }
    )


def assess(_found: Evidence, fired: Fired) -> Assessment:
    """DETECTED where the signer refused to go on from the old copy."""
    rule = str(fired.facts["refused_by"])
    text = "The signer signed a log that lacks an event it had signed before."
    signed = bool(fired.facts["signed_after_the_restore"])
    return Assessment(
        verdict="ACCEPTED" if signed or not rule else "DETECTED",
        rule="" if signed else rule,
        where="" if signed or not rule else named_in(SIGNER, DECIDES, MARK),
        breaches=(text,) if signed else (),
    )


GONE_ON: Mapping[str, Callable[[DataFolder, str], Result]] = {
    "the revocation of a grant": lambda house, _: house.done(
        "revoke", "stripe.create_payment_intent"
    ),
    "an erasure": lambda house, run: house.done("erase", "--run", run, "--reason", "art17-1-a"),
}


def _environment(folder: Path) -> dict[str, str]:
    """What a command needs to know; never our own database, queue or keys."""
    api_base = settings.STRIPE["api_base"] if settings.STRIPE["local"] else None
    account = {"STRIPE_API_BASE": api_base, "STRIPE_SECRET_KEY": ACCOUNT} if api_base else {}
    return throwaway.environment(folder) | account


def _size(signed: Result) -> int:
    """The size that ``export_bundle`` says was signed; 0 where it says none."""
    found = re.search(r"at size (\d+)", signed.said)
    return int(found.group(1)) if found else 0


def _codes(audit: Result) -> list[str]:
    damage = json.loads(audit.said)["damage"] if audit.said else []
    return sorted({str(each["code"]) for each in damage})


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="A log that was rolled back is not signed: the signer remembers what it signed.",
        wants="Undo a revocation or an erasure by restoring yesterday's database.",
        stopped_by="The signer's own state, stored outside the database.",
        params=(choice("undo", "Undo", tuple(GONE_ON)),),
        inject=inject,
        assess=assess,
    ),
    make_run=fixture.plain_run,
    why_alone="A separate data folder, deleted after the attack.",
)
