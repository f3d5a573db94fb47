"""``python -m sabotage.rogue``: reads a line of JSON (``how``), attacks the gate, writes one."""

import json
import os
import sys
from pathlib import Path

import django

from sabotage.rogue.bank import Bank

if __name__ == "__main__":
    how = json.loads(sys.stdin.readline())["how"]
    bank = Bank(Path(os.environ["NANOVM_DATA"]) / "gate")
    os.environ["NANOVM_GATE"] = str(bank.folder)  # which Django reads when it starts
    django.setup()
    from sabotage.rogue.client import attack

    print(json.dumps(attack(how, bank)), flush=True)
