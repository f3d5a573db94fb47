"""Run the desk where the invoices and their reader cannot even be imported; print what became."""

import json
import sys

sys.modules["pipeline"] = sys.modules["reader"] = None  # type: ignore[assignment]


def main() -> None:
    """A refund, in this process."""
    import django

    django.setup()
    from engine.evidence.fsck.audit import audit
    from engine.management import schema
    from engine.models import Run
    from engine.privacy import erasure
    from engine.runtime import chains
    from engine.worker.drive import drive_patiently
    from tests.engine.refund_desk.application import asked, refunded

    schema.migrate()
    run = asked(chains.create(), "A-1")
    drive_patiently(str(run.id))
    state = Run.objects.get(id=run.id).state
    erased = erasure.erase_run(str(run.id), "art17-1-a", "operator")
    said = {"state": state, "refunded": refunded(), "erased": erased.state}
    print(json.dumps({**said, "kept": erased.kept, "damage": len(audit().damage)}))


main()
