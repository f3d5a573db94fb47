"""The pipeline as a test drives it, and what it reads of what lies there."""

import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, TypeVar, cast

from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.db import connection, connections, transaction

from engine.models import Envelope, Run, Workspace
from engine.runtime import api, chains, warrants
from engine.store import ledgers
from engine.worker.drive import drive_patiently
from nanovm_core.core.canonical import decode
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Decision, Snapshot
from nanovm_core.errors import CanonicalError
from pipeline.create_run import create_run
from pipeline.models import Supplier
from pipeline.register import suppliers, versions
from pipeline.register.details import Details
from pipeline.register.sample_register import sample_suppliers
from pipeline.steps import approvals
from pipeline.steps.charge import gateway
from tests.kit.databases import Database
from tests.kit.pdf_builder import invoice_lines, text_pdf

T = TypeVar("T")


ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
PAY = "stripe.create_payment_intent"
POLICY = f"""
v = "nanovm-policy/1"
name = "tried"
%s

[[budgets]]
scope = "%s"
unit = "money"
max = %d

[[rules]]
id = "any"
at = "authorize"
outcome = "allow"
tools = ["{PAY}"]
when = "$proposal.amount_minor > 0"
why = "Any amount."
"""
USUAL = (
    Details(name="Acme Tools Ltd", iban="AT611904300234573201"),
    Details(
        name="Quokkabeam Papyrus GmbH",
        iban="GB33BUKB20201555555555",
        email="kanarie@quokkabeam.example",
    ),
)
EVERY_KEY = "SELECT ref, wrapped FROM secret"
OF_RUNS = "SELECT ref, wrapped FROM secret WHERE subject NOT GLOB '[rs]*-*-*-*-*-*'"
SQLITE_TRIGGERS = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
POSTGRES_TRIGGERS = (
    "SELECT tgname, tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger"
    " WHERE NOT tgisinternal"
)


TOTAL = "Total  EUR 120.00"


def invoice(total: str = TOTAL, *extra: str, number: str = "") -> bytes:
    """A small open invoice of one page; another total or text is another invoice."""
    is_usual = (total, extra) == (TOTAL, ())
    number = number or ("A-2026-17" if is_usual else other_number(f"{total} {extra}"))
    return text_pdf(invoice_lines(*extra, total=total, number=number))


def other_number(place: object) -> str:
    """The number of an invoice: each place has one of its own, and no two are alike."""
    return f"B-{sha256(str(place).encode()).hexdigest()[:12]}"


def know_the_usual(workspace: Workspace) -> None:
    """Register the suppliers of the invoices here, in a register that is empty."""
    if workspace.successor_id is None and not workspace.suppliers.exists():
        suppliers.register(workspace.id, [*USUAL, *sample_suppliers()], actor="runtime")
        workspace.refresh_from_db()


def known_workspace() -> Workspace:
    """A workspace that knows the suppliers of the invoices here."""
    workspace = chains.create()
    know_the_usual(workspace)
    return workspace


def accepted_run(*document: Any, **options: Any) -> Run:
    """A run over a document whose text is accepted by the test, which made it."""
    return create_run(*document, **{"text_accepted": True, **options})


def snapshot(run: Run) -> Snapshot:
    """The run's value now."""
    run.refresh_from_db()
    return decode_snapshot(bytes(run.snapshot))


def bodies(run: Run | str) -> list[dict[str, Any]]:
    """The envelopes of a run (or of "log"), decoded."""
    name = run if isinstance(run, str) else str(run.id)
    found = Envelope.objects.filter(run=name).order_by("workspace", "n")
    return [_body(bytes(each.bytes)) for each in found]


def _body(data: bytes) -> dict[str, Any]:
    """An envelope's fields; none where its bytes were damaged."""
    try:
        value = decode(data)
    except CanonicalError:
        return {}
    return dict(value) if isinstance(value, dict) else {}


def kinds(run: Run) -> list[str]:
    """The kinds of a run's envelopes."""
    found = Envelope.objects.filter(run=str(run.id)).order_by("n")
    return list(found.values_list("kind", flat=True))


def reason(run: Run) -> str:
    """The code of why the run stands or ended; empty without one."""
    said = snapshot(run).reason
    return said[0] if said else ""


def payments(run: Run) -> list[Any]:
    """What the far side's own records hold of this run, whatever became of it."""
    return [
        intent
        for intent in _listed()
        if intent.metadata and intent.metadata.to_dict().get("run") == str(run.id)
    ]


def _listed() -> list[Any]:
    listed = gateway.configured().v1.payment_intents.list({"limit": 100})
    return [*listed.auto_paging_iter()]


def connected_accounts() -> list[Any]:
    """The accounts that the far side knows for suppliers, of this test's platform."""
    listed = gateway.configured().v1.accounts.list({"limit": 100})
    return [*listed.auto_paging_iter()]


def succeeded(run: Run) -> list[tuple[int, str]]:
    """Amount and currency of every payment of this run that succeeded."""
    return [(each.amount, each.currency) for each in payments(run) if each.status == "succeeded"]


def sql(*statements: tuple[str, Sequence[Any]]) -> None:
    """Raw SQL behind the application's back: triggers away, change, triggers back."""
    sqlite = connection.vendor == "sqlite"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(SQLITE_TRIGGERS if sqlite else POSTGRES_TRIGGERS)
        triggers = cursor.fetchall()
        for name, table, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}" + ("" if sqlite else f" ON {table}"))
        for statement, values in statements:
            if not sqlite:  # a literal of bytes, as SQLite writes it
                statement = re.sub(r"(?<!')\bx'([0-9a-f]*)'", r"'\\x\1'::bytea", statement)
            cursor.execute(statement, values)
        for _, _, text in triggers:
            cursor.execute(text)


def entries(workspace: Workspace) -> list[versions.Entry]:
    """Every supplier of a workspace, the newest first; not its own company."""
    rows = Supplier.objects.filter(workspace=workspace).exclude(state=suppliers.OWN)
    return versions.open_entries(workspace, list(rows.order_by("-created_ms", "-id")))


class Counterpart(NamedTuple):
    """A counterpart of Stripe that runs for the whole session, and its accounts' keys."""

    url: str
    folder: Path
    keys: Iterator[str]


class Recorded(NamedTuple):
    """A copy of a folder, the account that paid where one did, and what was built."""

    folder: Path
    account: str
    made: object


_RECORDED: dict[object, Recorded] = {}  # by how it was built


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A data folder with everything in it."""

    folder: Path
    counterpart: Counterpart
    database: Database

    def new(self, document: bytes | None = None, **options: Any) -> Run:
        """A run that is READY."""
        workspace: Workspace = options.pop("workspace", None) or chains.create()
        if options.pop("knows", True):
            know_the_usual(workspace)
        name = options.pop("file_name", "invoice.pdf")
        if document is None:  # the small one, under a number that no earlier run had
            before = Run.objects.filter(workspace=workspace).count()
            document = invoice(number=other_number(before)) if before else invoice()
        return accepted_run(workspace, document, name, **options)

    def run(self, document: bytes | None = None, **options: Any) -> Run:
        """A run that was driven up to where it waits or ends."""
        return self.drive(self.started(document, **options))

    def started(self, document: bytes | None = None, **options: Any) -> Run:
        """A run that owes its first effect, with nobody on it."""
        run = self.new(document, **options)
        api.start(str(run.id), "visitor")
        return run

    def paused(self, step: str = "charge", document: bytes | None = None, **options: Any) -> Run:
        """A run that was stepped up to a step and is paused before it."""
        run = self.started(document, stepping=True, **options)
        while self.drive(run).step != step:
            assert snapshot(run).held_by == ""
            api.step(str(run.id), "visitor")
        return run

    def owing(self, step: str = "charge") -> Run:
        """A run that owes a step's effect and has not begun it."""
        run = self.once(House.paused, step)
        api.resume(str(run.id), "visitor")
        return run

    def resumed(self, run: Run) -> Run:
        """A run that goes on after a pause, as far as it comes."""
        api.resume(str(run.id), "visitor")
        return self.drive(run)

    def drive(self, run: Run) -> Run:
        """Do what the run owes; whoever is not registered yet is, by a person's approval."""
        drive_patiently(str(run.id))
        if snapshot(run).held_by == approvals.FIRST_PAYMENT:
            approvals.approve(str(run.id), "visitor")
            drive_patiently(str(run.id))
            run.refresh_from_db()
        return run

    def once(self, build: Callable[..., T], *args: Any) -> T:
        """What ``build`` makes of an empty folder, built once a session and copied from then on.

        In a folder that is in use it is built, and so on a server, where copies take longer, and
        where it made accounts at the far side and has not paid: each copy would pay from the same
        one. Nothing that it depends on may be patched.
        """
        if self.database.url or Workspace.objects.exists():
            return build(self, *args)
        key = (build, args)
        if key not in _RECORDED:
            made = build(self, *args)
            account = settings.STRIPE["key"] if _listed() else ""
            if not account and connected_accounts():
                return made
            connections.close_all()
            folder = Path(mkdtemp(prefix="recorded-", dir=self.folder.parent))
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
            _RECORDED[key] = Recorded(folder, account, made)
        else:
            connections.close_all()
            warrants._sealed.cache_clear()  # of the same log, as another test left it
            shutil.copytree(_RECORDED[key].folder, self.folder, dirs_exist_ok=True)
            settings.STRIPE["key"] = _RECORDED[key].account or settings.STRIPE["key"]
        return cast(T, deepcopy(_RECORDED[key].made))

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """The raw bytes of every file that the application owns."""
        for folder in (self.folder, *self.database.folders()):
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    yield path, path.read_bytes()

    def command(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A management command as ``manage.py`` runs it, in this process and on this folder."""
        out, err, status = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            command: Any = load_command_class(get_commands()[name], name)
            try:
                command.run_from_argv(["manage.py", name, *words])
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else bool(end.code)
        return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())

    @contextmanager
    def running(self, *words: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
        """A management command that says that it is ready; SIGTERM ends it with success."""
        command = [sys.executable, "manage.py", *words]
        env = {**os.environ, "NANOVM_DATA": str(self.folder)}
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
            process.communicate()

    def far_side(self) -> bytes:
        """The raw bytes of the counterpart's database."""
        return b"".join(path.read_bytes() for path in self.counterpart.folder.glob("*.sqlite3*"))

    def key_store(self) -> bytes:
        """The raw bytes of every file of the key store."""
        return b"".join(path.read_bytes() for path in self.folder.glob("keys.sqlite3*"))

    def wrapped_keys(self, which: str = OF_RUNS) -> dict[str, bytes]:
        """The wrapped keys of runs that the key store holds, by ref; or of all (``EVERY_KEY``)."""
        with closing(sqlite3.connect(self.folder / "keys.sqlite3")) as store:
            return dict(store.execute(which).fetchall())


def refusal(decision: Decision) -> str:
    """The code that a person is answered with; empty where nothing was refused."""
    return decision.refusal.code if decision.refusal else ""


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The JSON lines that a command printed."""
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def crash(*_: object, **__: object) -> None:
    """In the place of any function: the process ends there, and nothing catches that."""
    raise KeyboardInterrupt


def failing_once(call: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """The same call, which raises the first time."""
    left = [error]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return call(*args, **kwargs)

    return wrapped


class Account(NamedTuple):
    """An account of a log, and the limit in force for it."""

    limit: int
    reserved: int
    spent: int


def accounts(run: Run) -> dict[str, Account]:
    """What the accounts of a run's workspace say."""
    found = ledgers.stored(Workspace.objects.get(id=run.workspace_id))
    assert found is not None
    return {name: Account(found.limit(name) or 0, *used) for name, used in found.accounts.items()}


def limit(run: Run, name: str, most: int) -> None:
    """Set the limit of an account of a run's workspace."""
    limits = {"policy": run.policy_hash, "limits": {name: most}}
    chains.seal(run.workspace_id, "policy", limits, actor="operator")
