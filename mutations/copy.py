"""Attacks a temporary copy of the product: ``python -m mutations ID… -- mutations.copy``.

It reads one line of JSON (``injector``, ``params``, ``moment``, ``far_side_ms``, ``without``: the
IDs again) and writes one. All that it makes is in the folder that NANOVM_DATA names.
"""

import json
import os
import sys

import django

NICE = 10  # visitors' runs come first


def main() -> None:
    """Make the copy, attack it, and print the outcome."""
    os.nice(NICE)
    asked = json.loads(sys.stdin.readline())
    django.setup()
    from mutations.copy_attack import attack_copy  # the product's tables need Django to be ready

    print(json.dumps(attack_copy(asked)), flush=True)


if __name__ == "__main__":
    main()
