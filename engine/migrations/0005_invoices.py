"""Seven tables belong to the invoices' own application from here on, which makes them."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0004_place")]
