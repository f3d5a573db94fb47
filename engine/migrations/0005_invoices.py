"""Seven tables belong to the invoices' own application from here on; they stay as they are."""

from django.db import migrations

MOVED = ("Bill", "SupplierIndex", "Supplier", "Register", "StripeEvent", "FarSide", "WebhookCount")


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0004_place")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name=name) for name in MOVED]
        ),
    ]
