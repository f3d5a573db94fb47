"""What the pages remember of their own: which form was already sent."""

from django.db import models

from pipeline.models import Workspace


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
