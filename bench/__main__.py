"""Runs every bench of the kernel in one go: ``make bench``."""

import sys
import time
from pathlib import Path

from bench import authorize, conditions, engines, signing, transition
from bench.kit import report

RESULTS = Path(__file__).with_name("results.md")


def main() -> int:
    """Measure, print, and write results.md; 1 where a bar is not reached."""
    began = time.monotonic()
    tables = [conditions.table(), *transition.tables(), authorize.table(), engines.table()]
    tables.append(signing.table())
    text = report.document(tables)
    sys.stdout.write(text)
    RESULTS.write_text(text, encoding="utf-8")
    barred = [(table, each) for table in tables for each in table.rows if each.bar is not None]
    short = [(table, each) for table, each in barred if each.verdict != "PASS"]
    sys.stdout.write(
        f"\n{len(barred) - len(short)} of {len(barred)} bars are reached; "
        f"{time.monotonic() - began:.0f} s; written to bench/{RESULTS.name}\n"
    )
    for table, each in short:
        sys.stdout.write(f"short of it: {table.title}, {each.name}: {each.ratio}\n")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
