"""The gate's table: the calls of agents from outside, as lists find them."""

from django.db import models

from engine.models import Run, Workspace


class Call(models.Model):
    """A call: whose, under which program, of which tool. Its run says what became of it."""

    run = models.OneToOneField(Run, on_delete=models.PROTECT, primary_key=True, related_name="call")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    agent = models.CharField(max_length=30)
    program = models.CharField(max_length=40)
    tool = models.CharField(max_length=64)  # empty: one that the program does not grant
    created_ms = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["workspace", "agent", "-created_ms"], name="call_of_agent")]
