"""The tables of the invoices, which the engine's migrations made: only the state goes over."""

from django.db import migrations

MOVED = ("Register", "WebhookCount", "FarSide", "Supplier", "StripeEvent", "Bill", "SupplierIndex")
FROM = "pipeline"  # Django's label of the engine


class Adopt(migrations.operations.base.Operation):
    """Take models into this application as they stand, with the names of their tables."""

    def state_forwards(self, app_label, state):
        for name in MOVED:
            model = state.models[FROM, name.lower()].clone()
            model.app_label, model.options["db_table"] = app_label, f"{FROM}_{name.lower()}"
            model.fields = {each: self._own(field) for each, field in model.fields.items()}
            state.add_model(model)

    def database_forwards(self, *_):
        """The tables stay as they are."""

    database_backwards = database_forwards

    @staticmethod
    def _own(field):
        """The field; a reference to a model that moves goes to where it is now."""
        _, _, args, given = field.deconstruct()
        for name in MOVED:
            if given.get("to") == f"{FROM}.{name.lower()}":
                given["to"] = f"invoices.{name.lower()}"
        return type(field)(*args, **given)


class Migration(migrations.Migration):
    initial = True
    dependencies = [(FROM, "0004_place")]
    operations = [Adopt()]
