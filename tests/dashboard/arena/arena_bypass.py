"""A program for a process without a guard: propose a cent more from the box, print the pages."""

import json
import os
import sys


def main(folder: str) -> None:
    """Everything in this process: a database of its own, a visitor, a run, a proposal."""
    os.environ |= {"NANOVM_DATA": folder, "DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from dashboard.arena import box
    from pipeline.queries import runs
    from pipeline.runtime import queue
    from pipeline.worker import drive

    call_command("migrate", verbosity=0, interactive=False)
    queue.wake = lambda run_id, in_ms=0: drive.drive_patiently(run_id)
    visitor = Client(headers={"host": "localhost"})
    code = visitor.post("/attack/start/")["Location"].partition("run=")[2]
    owner = visitor.get("/attack/").wsgi_request
    from dashboard.web import workspace

    run = runs.by_code(workspace.current(owner), code)
    typed = box.filled(box.presets()["cent-more"], run)
    form = {"proposal": typed.text, "mode": typed.mode, "run": code}
    attack = visitor.post("/attack/propose/", form)["Location"]
    bundle = f"/attack/bundles/{attack.split('/')[-2]}/"
    pages = {
        "attack": attack,
        "arena": "/attack/",
        "run": f"/runs/{code}/",
        "bundle": bundle,
        "whole": f"{bundle}?proposal=1",
    }
    said = {name: visitor.get(path) for name, path in pages.items()}
    said["stranger"] = Client(headers={"host": "localhost"}).get(bundle)
    print(json.dumps({name: [one.status_code, one.content.decode()] for name, one in said.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
