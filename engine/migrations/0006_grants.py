"""The narrower grants that a run began under, beside its program and policy."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0005_invoices")]

    operations = [migrations.AddField("terms", "grants", models.BinaryField(null=True))]
