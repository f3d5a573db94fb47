"""The accounts of a log become its ledger, and those that all share the ledger of the house log.

Values alone: that they are sealed in each open log is ``engine.management.upgrade``'s to do.
"""

import json
from uuid import UUID, uuid4

from django.db import migrations, models

HOUSE = UUID(int=1)


def ledger(accounts):
    """The bytes of a ledger with these accounts: by name, its limit and what is used of it."""
    value = {
        "accounts": {name: each[1:] for name, each in accounts.items() if any(each[1:])},
        "agents": {},
        "alerts": {},
        "at_ms": 0,
        "limits": {name: each[0] for name, each in accounts.items()},
        "policy": "",
        "totals": {},
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def convert(apps, _):
    """Write the ledger of each log; accounts that cannot be read are left as they are."""
    workspaces = apps.get_model("pipeline", "Workspace").objects
    for log in workspaces.all():
        try:
            found = json.loads(bytes(log.ledger) or b"{}")
            data = ledger({name: [limit, *used] for name, (limit, *used) in found.items()})
        except (AttributeError, TypeError, ValueError):
            continue
        workspaces.filter(id=log.id).update(ledger=data)
    rows = apps.get_model("pipeline", "Budget").objects.all()
    shared = {each.account: [each.limit, each.reserved, each.spent] for each in rows}
    if shared:
        origin = f"nanovm.localhost/house-{uuid4().hex[:12]}"
        zero, at_ms = "0" * 64, workspaces.order_by("created_ms").first().created_ms
        data = ledger(shared)
        workspaces.create(id=HOUSE, origin=origin, log_head=zero, created_ms=at_ms, ledger=data)


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0006_grants")]

    operations = [
        migrations.RenameField("workspace", "accounts", "ledger"),
        migrations.RunPython(convert, elidable=False),
        migrations.DeleteModel("Budget"),
    ]
