"""What the pages remember of their own: which form was already sent."""

from django.db import models

from pipeline.models import Workspace


class Sent(models.Model):
    """A form that was sent: its key, made when the page was rendered, and where it led."""

    key = models.CharField(max_length=80, primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sent")
    url = models.CharField(max_length=200, blank=True)  # empty while it is being done
    created_ms = models.BigIntegerField()
