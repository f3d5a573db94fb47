"""The tables of the invoices: suppliers, claims on invoices, and what Stripe said later."""

from django.db import models

from engine.models import BytesField, Run, Workspace

NEW_MARKS = ("total", "like", "joined", "pair", "account", "tax")  # of a claim: see ``Bill``


class Register(models.Model):
    """A workspace's supplier register: the name of the key that its blind indexes are made with."""

    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, primary_key=True)
    index_ref = models.CharField(max_length=60)

    class Meta:
        db_table = "pipeline_register"


class Supplier(models.Model):
    """Whom a workspace pays. The details are a secret; an envelope commits to each version."""

    id = models.UUIDField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="suppliers")
    code = models.CharField(max_length=8)  # typed by whoever approves other bank details
    state = models.CharField(max_length=12)  # active, blocked, erased
    is_sample = models.BooleanField(default=False)
    registered_by = models.CharField(max_length=80)
    ref = models.CharField(max_length=60)  # vault://secret/<uuid4>, of this version
    commitment = models.CharField(max_length=64)
    ciphertext = BytesField(null=True)
    sealed_n = models.BigIntegerField(default=0)  # on the log's own chain
    created_ms = models.BigIntegerField()
    changed_ms = models.BigIntegerField(default=0)

    class Meta:
        db_table = "pipeline_supplier"


class SupplierIndex(models.Model):
    """What finds a supplier without telling who it is: an HMAC of its tax id, name or account."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False)
    supplier = models.ForeignKey(Supplier, on_delete=models.PROTECT, related_name="indexed")
    kind = models.CharField(max_length=8)  # tax_id, name, iban
    value = models.CharField(max_length=64)

    class Meta:
        db_table = "pipeline_supplierindex"
        indexes = [models.Index(fields=["workspace", "kind", "value"], name="supplier_found")]
        constraints = [  # several suppliers may have one account
            models.UniqueConstraint(
                fields=["workspace", "kind", "value"],
                condition=~models.Q(kind="iban"),
                name="supplier_index",
            )
        ]


class Bill(models.Model):
    """An invoice that a run claimed, as keyed marks: what finds the same invoice again.

    ``register.bills`` makes the marks. They lead to nobody without the supplier's key, or, across
    suppliers, the workspace's. Claims of an earlier release have none from ``like`` on.
    """

    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="bill")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False)
    supplier = models.ForeignKey(Supplier, on_delete=models.PROTECT, related_name="bills")
    number = models.CharField(max_length=64)  # empty where the invoice has none
    document = models.CharField(max_length=64)  # of the file's bytes
    total = models.CharField(max_length=64)  # of amount, currency and date of issue
    near = models.CharField(max_length=1200)  # of an earlier release; else empty
    like = models.CharField(max_length=64, default="")  # of the number's normal forms
    joined = models.CharField(max_length=64, default="")
    pair = models.CharField(max_length=64, default="")  # of number and amount; across suppliers
    account = models.CharField(max_length=64, default="")  # of amount, date and account
    tax = models.CharField(max_length=64, default="")  # of amount, date and tax id
    across = models.CharField(max_length=64, default="")  # of the last three, as they were made
    duplicate_of = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="duplicates", null=True
    )
    matched = models.CharField(max_length=10)  # by which mark: ``register.bills`` names them

    class Meta:
        db_table = "pipeline_bill"
        indexes = [
            models.Index(fields=["workspace", mark], name=f"bill_{mark}")
            for mark in ("number", "document", *NEW_MARKS)
        ]
        constraints = [  # two runs at once cannot both be the first
            models.UniqueConstraint(
                fields=["workspace", mark],
                condition=models.Q(duplicate_of=None) & more,
                name=f"bill_first_{mark}",
            )
            for mark, more in (
                ("number", ~models.Q(number="")),
                ("document", models.Q()),
                *((mark, ~models.Q(**{mark: ""}) & ~models.Q(across="")) for mark in NEW_MARKS),
            )
        ]


class Listed(models.Model):
    """A run as lists sort, count and sum it: a narrow row, and nothing personal in it."""

    pk = models.CompositePrimaryKey("workspace", "run")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_index=False)
    code = models.CharField(max_length=8)
    state = models.CharField(max_length=10)  # of ``engine.queries.runs.FILTERS``
    supplier = models.UUIDField(null=True)  # its entry in the register
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3)
    paid = models.BooleanField()

    class Meta:
        db_table = "pipeline_listed"


class Found(models.Model):
    """A word that finds a run: a keyed hash, which ``register.found`` makes."""

    pk = models.CompositePrimaryKey("workspace", "word", "run")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    word = models.CharField(max_length=24)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        db_table = "pipeline_found"
        indexes = [models.Index(fields=["run"], name="found_run")]


class StripeEvent(models.Model):
    """A webhook's event that arrived, once each, and the run that it names."""

    digest = models.CharField(max_length=64, primary_key=True)  # SHA-256 of Stripe's id
    kind = models.CharField(max_length=64)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="events", null=True)
    at_ms = models.BigIntegerField()
    looked_ms = models.BigIntegerField(null=True)  # when Stripe's own record was read, if need be

    class Meta:
        db_table = "pipeline_stripeevent"
        indexes = [
            models.Index(fields=["run"], condition=models.Q(looked_ms=None), name="event_news")
        ]


class WebhookCount(models.Model):
    """How many deliveries of webhooks were accepted, repeated, unknown, foreign, refused."""

    name = models.CharField(max_length=12, primary_key=True)
    count = models.BigIntegerField(default=0)

    class Meta:
        db_table = "pipeline_webhookcount"


class FarSide(models.Model):
    """What Stripe's record said of a payment after it was made: each state once, and sealed."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="far_side")
    refunded_minor = models.BigIntegerField()
    dispute = models.CharField(max_length=40, blank=True)  # its status, in Stripe's words
    at_ms = models.BigIntegerField()
    sealed_n = models.BigIntegerField()  # on the log's own chain

    class Meta:
        db_table = "pipeline_farside"
