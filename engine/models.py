"""The tables: workspaces, runs, envelopes, effects owed, secrets.

Hashed bytes are stored as those bytes. Every column beside them is an index for a query;
what counts is recomputed from the bytes.
"""

from functools import cached_property
from typing import Any

from django.db import models
from django.db.models import Q

from nanovm_core.core.envelope import ZERO


class BytesField(models.BinaryField):  # type: ignore[type-arg]
    """The bytes as stored: SQLite keeps even text in a BLOB column, if somebody puts it."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        """The bytes of whatever was stored."""
        kept = value is None or isinstance(value, bytes | memoryview)
        return value if kept else str(value).encode()

    def deconstruct(self) -> Any:
        """The same column as Django's own, so that migrations know nothing of this."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.BinaryField", args, kwargs


class Workspace(models.Model):
    """A visitor's own runs, log, vault and ledger. Its row is the log's lock."""

    id = models.UUIDField(primary_key=True)
    origin = models.CharField(max_length=80, unique=True)  # <host>/<workspace>, the log's name
    size = models.BigIntegerField(default=0)  # envelopes in the log; the next seq
    log_length = models.BigIntegerField(default=0)  # envelopes of the "log" run; the next n
    log_head = models.CharField(max_length=64)
    edge = BytesField(default=b"")  # of the tree of ``size`` leaves: what an append begins with
    created_ms = models.BigIntegerField()
    successor = models.ForeignKey(  # set: a restore closed this log, and goes on in that one
        "self", on_delete=models.PROTECT, related_name="predecessors", null=True
    )
    weight = models.PositiveSmallIntegerField(default=1)  # its share of the worker's threads
    ledger = BytesField(default=b"")  # limits, accounts and more, which its newest envelope seals
    # Whence its last form came: 16 bits of a keyed digest that is another one each day, so that no
    # address can be told from it. Null: from this machine's commands.
    place = models.IntegerField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(weight__gte=1), name="workspace_weight")]

    @cached_property
    def name(self) -> str:
        """Its id, as text."""
        return str(self.id)


def _of_log(related_name: str) -> "models.ForeignKey[Workspace, Workspace]":
    """The log that a row belongs to; the table's own index begins with it."""
    return models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name=related_name, db_index=False
    )


class Run(models.Model):
    """One execution. ``snapshot`` is its value; ``head`` and ``length`` seal its chain."""

    id = models.UUIDField(primary_key=True)
    workspace = _of_log("runs")
    code = models.CharField(max_length=8, unique=True)
    program_hash = models.CharField(max_length=64)
    policy_hash = models.CharField(max_length=64)
    model = models.CharField(max_length=16)  # faithful, gullible, compromised
    pace_ms = models.IntegerField(default=0)  # a pause for spectators before each effect
    state = models.CharField(max_length=40)
    step = models.CharField(max_length=40)
    snapshot = BytesField()
    length = models.BigIntegerField(default=0)
    head = models.CharField(max_length=64)
    quarantined = models.BooleanField(default=False)
    created_ms = models.BigIntegerField()
    ended_ms = models.BigIntegerField(null=True)
    erased_ms = models.BigIntegerField(null=True)
    deadline_ms = models.BigIntegerField(null=True)  # when the kernel is to be told the time
    # The effect that it owes, for workers to find: the snapshot decides, and this repeats it.
    owed_key = models.CharField(max_length=64, blank=True)  # empty: it owes nothing
    owed_tool = models.CharField(max_length=64, blank=True)
    owed_ms = models.BigIntegerField(default=0)  # when its intent was sealed
    due_ms = models.BigIntegerField(null=True)  # not before; rises where the outside is silent
    tries = models.IntegerField(default=0)  # attempts that found the outside silent
    begun_ms = models.BigIntegerField(null=True)
    # Who drives it, and until when; a delivery that finds it held is absorbed.
    holder = models.CharField(max_length=36, blank=True)
    until_ms = models.BigIntegerField(default=0)
    deliveries = models.BigIntegerField(default=0)  # those that were absorbed
    terms = models.ForeignKey(  # unchecked: missing terms are found at the next transition
        "Terms", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True
    )

    about = ""  # of a run that is made: what its application lists it by; stored by that alone

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-created_ms"]),
            models.Index(
                fields=["due_ms", "until_ms"],  # of what goes on, and what is held or due beside
                condition=Q(ended_ms=None) | Q(until_ms__gt=0) | Q(due_ms__isnull=False),
                name="run_open",
            ),
            models.Index(
                fields=["deadline_ms"],  # of those that nobody drives: it moves with each step
                condition=Q(deadline_ms__isnull=False, holder=""),
                name="run_deadline",
            ),
        ]

    @cached_property
    def name(self) -> str:
        """Its id, as envelopes bear it."""
        return str(self.id)

    @property
    def shown_head(self) -> str:
        """The head that people see: 64 zeros where the chain was found damaged."""
        return ZERO if self.quarantined else self.head

    @cached_property
    def beside(self) -> "Terms":
        """What it began under; empty where it is missing."""
        try:
            return self.terms or Terms()
        except Terms.DoesNotExist:
            return Terms()

    @cached_property
    def program_source(self) -> bytes:
        """The program beside the run; empty where somebody took it away."""
        return bytes(self.beside.program)

    @cached_property
    def policy_source(self) -> bytes:
        """The policy beside the run; empty where somebody took it away."""
        return bytes(self.beside.policy)

    @cached_property
    def narrowed_grants(self) -> bytes:
        """The narrower grants beside the run; empty where it has the program's own."""
        return bytes(self.beside.grants or b"")


class Terms(models.Model):
    """A program and policy that runs began under, as they were: once, however many name them."""

    digest = models.CharField(max_length=64, primary_key=True)  # see ``run_rows``
    program = BytesField()
    policy = BytesField()
    grants = BytesField(null=True)  # narrower ones than the program's, where runs began under such


class Envelope(models.Model):
    """One audit record: the exact bytes, and the hash that is also its leaf."""

    pk = models.CompositePrimaryKey("workspace", "seq")
    workspace = _of_log("envelopes")
    seq = models.BigIntegerField()
    run = models.CharField(max_length=36)  # a run's UUID, "log" or "agent:<name>"
    n = models.BigIntegerField()
    bytes = BytesField()
    hash = models.CharField(max_length=64)
    kind = models.CharField(max_length=24)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "workspace", "n"], name="envelope_n")]


class Node(models.Model):
    """The hash of a perfect subtree of a log: leaves [index · 2^level, (index + 1) · 2^level).

    Level 0 repeats the leaf hashes: what hashes up to the last signed root is what counts.
    They lie in the order in which they are made (``merkle.position``): an append is one place.
    """

    pk = models.CompositePrimaryKey("workspace", "position")
    workspace = _of_log("nodes")
    position = models.BigIntegerField()
    level = models.SmallIntegerField()
    index = models.BigIntegerField()
    hash = BytesField()  # 32 bytes


class Tally(models.Model):
    """What a log had counted as of an envelope, for windows of time; see ``store/tallies``."""

    pk = models.CompositePrimaryKey("workspace", "scope", "what", "at_ms", "seq")
    workspace = _of_log("tallies")
    scope = models.CharField(max_length=128, blank=True)  # an agent; empty: all
    what = models.CharField(max_length=160)  # the rest of the total's name
    at_ms = models.BigIntegerField()
    seq = models.BigIntegerField()
    total = models.BigIntegerField()


class Served(models.Model):
    """When a run of a workspace was last taken in turn, by agent; see ``store/turns``."""

    pk = models.CompositePrimaryKey("workspace", "agent")
    workspace = _of_log("served")
    agent = models.CharField(max_length=128, blank=True)  # NANOVM_AGENT; empty: one for all agents
    at_ms = models.BigIntegerField()


class Checkpoint(models.Model):
    """A signed head of a log, as the signer made it; the signer keeps its own copy elsewhere."""

    workspace = _of_log("checkpoints")
    size = models.BigIntegerField()
    note = BytesField()  # the C2SP signed note, with its cosignatures
    at_ms = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["workspace", "-size"])]


class AdapterCall(models.Model):
    """The adapter's own record: one row before each call of a granted tool."""

    pk = models.CompositePrimaryKey("run", "number")
    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="adapter_calls", db_index=False
    )
    number = models.IntegerField()  # of the run's calls, from 1
    key = models.CharField(max_length=64)
    tool = models.CharField(max_length=64)
    at_ms = models.BigIntegerField()
    outcome = models.CharField(max_length=24, default="begun")


class Absorbed(models.Model):
    """How often an event kind came again after it was sealed as ignored."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="absorbed")
    kind = models.CharField(max_length=40)
    count = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "kind"], name="absorbed_kind")]


class Secret(models.Model):
    """A value in the vault, encrypted under a key of its own that lives elsewhere.

    A document lies in a file of the media folder, encrypted the same way; its row says so.
    """

    ref = models.CharField(max_length=60, primary_key=True)  # vault://secret/<uuid4>
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="secrets")
    slot = models.CharField(max_length=40)
    commitment = models.CharField(max_length=64)
    ciphertext = BytesField(null=True)
    file = models.CharField(max_length=60, blank=True)
    created_ms = models.BigIntegerField()
    erased_ms = models.BigIntegerField(null=True)  # null: readable; set: a tombstone
    staging = models.BooleanField(default=False)  # destroyed by the next step, not erased


class Link(models.Model):
    """A link that hands one right on; what ``engine/runtime/links.py`` seals of it counts."""

    id = models.UUIDField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="links")
    grants = models.CharField(max_length=8)
    target = models.CharField(max_length=40)  # the id of a run, attack or supplier; a log's name
    narrowed = models.BooleanField()  # its holder sees no personal value
    secret = models.CharField(max_length=64, unique=True)  # SHA-256 of it
    until_ms = models.BigIntegerField()
    sealed_n = models.BigIntegerField()  # of the event that made it, on the log's own chain
    revoked_ms = models.BigIntegerField(null=True)
    used_ms = models.BigIntegerField(null=True)
    spent_ms = models.BigIntegerField(null=True)  # its act was done: it is for one
    uses = models.BigIntegerField(default=0)


class Schema(models.Model):
    """The layouts that this database had, the present one last.

    Its columns stay as they are for good: each release reads them before it knows the rest.
    """

    version = models.PositiveIntegerField(primary_key=True)
    release = models.CharField(max_length=20)  # of nanovm, that made the tables so
    at_ms = models.BigIntegerField()
