"""The marks of a claim that find one number in other forms and one invoice of two suppliers."""

from django.db import migrations, models

MARKS = ("like", "joined", "pair", "account", "tax")
MARK = models.CharField(default="", max_length=64)
AT = ["workspace", "kind", "value"]


class Migration(migrations.Migration):
    dependencies = [("invoices", "0001_tables"), ("pipeline", "0006_grants")]

    operations = [
        *(migrations.AddField("bill", each, MARK.clone()) for each in (*MARKS, "across")),
        *(migrations.AddIndex("bill", models.Index(fields=["workspace", each], name=f"bill_{each}")) for each in MARKS),
        *(
            migrations.AddConstraint("bill", models.UniqueConstraint(fields=["workspace", each], condition=models.Q(duplicate_of=None) & (~models.Q(**{each: ""}) & ~models.Q(across="")), name=f"bill_first_{each}"))
            for each in ("total", *MARKS)
        ),
        migrations.RemoveConstraint("supplierindex", "supplier_index"),
        migrations.AddIndex("supplierindex", models.Index(fields=AT, name="supplier_found")),
        migrations.AddConstraint("supplierindex", models.UniqueConstraint(fields=AT, condition=~models.Q(kind="iban"), name="supplier_index")),
    ]
