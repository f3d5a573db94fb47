"""The rows of the pages: forms that were sent, and the players of the arena."""

from django.db import models

from engine.models import Workspace
from sabotage.models import Attack


class Sent(models.Model):
    """A form that was sent: whose it was, the digest of its key, and where it led."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sent")
    key = models.CharField(max_length=64)  # SHA-256 of what the form bore
    # The browser that came without a workspace, by a digest of its CSRF cookie; else null.
    browser = models.CharField(max_length=64, null=True)  # noqa: DJ001 - null is distinct from null
    url = models.CharField(max_length=200, blank=True)  # empty while it is being done
    created_ms = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "key"], name="sent_once"),
            models.UniqueConstraint(fields=["browser", "key"], name="sent_once_by_browser"),
        ]


class Entry(models.Model):
    """An attack that was made from the red team's box. Its words lie in the vault alone."""

    attack = models.OneToOneField(
        Attack, on_delete=models.CASCADE, primary_key=True, related_name="entry"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="entries", db_index=False
    )
    at_ms = models.BigIntegerField()
    reproduction = models.JSONField(default=dict)  # of a bypass: refs and clear facts

    class Meta:
        indexes = [models.Index(fields=["workspace", "-at_ms"], name="entry_of_workspace")]


class Player(models.Model):
    """The name under which a visitor wants to be on the scoreboard."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="player"
    )
    name = models.CharField(max_length=24)
