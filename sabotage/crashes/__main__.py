"""Has an agent's process killed in a data folder of its own: ``python -m sabotage.crashes``.

It reads one line of JSON (``step``, ``times``, ``strategy``, ``through``) and writes one. All that
it makes is in the folder that NANOVM_DATA names.
"""

import json
import sys

import django


def main() -> None:
    """Make the folder, attack its processes, and print what came of it."""
    asked = json.loads(sys.stdin.readline())
    django.setup()
    from sabotage.crashes.house import crash  # the product's tables need Django to be ready

    print(json.dumps(crash(asked)), flush=True)


if __name__ == "__main__":
    main()
