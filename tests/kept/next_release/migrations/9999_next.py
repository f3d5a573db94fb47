"""A column and a table more, and rows that change: what a release's migration usually does."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import F

from tests.kept.next_release.migrations import LAST


def fill(apps, schema_editor):
    apps.get_model("pipeline", "Run").objects.update(label=F("code"))
    if getattr(settings, "NEXT_FAILS", False):
        raise ValueError("a row that this migration did not expect")


class Migration(migrations.Migration):
    dependencies = [("pipeline", LAST)]
    operations = [
        migrations.AddField("run", "label", models.CharField(max_length=8, null=True)),
        migrations.CreateModel(  # its foreign key is made by statements after all others
            "Remark",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("run", models.ForeignKey("pipeline.Run", models.PROTECT)),
            ],
        ),
        migrations.RunPython(fill),
    ]
