"""No table of revocations: they are read from the log, where they were always sealed."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0002_append_only")]
    operations = [migrations.DeleteModel("Revocation")]
