"""Writes generated invoices and their truth: ``python -m samples.generated FOLDER``."""

import argparse
import dataclasses
import json
from pathlib import Path

from samples.generated import KINDS, batch, generate


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="samples.generated", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=20, help="how many; with 'each', of each kind")
    parser.add_argument("--kind", default="all", choices=("all", "each", *KINDS))
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    seeds = range(chosen.seed, chosen.seed + chosen.count)
    made = (generate(seed) for seed in seeds)
    if chosen.kind != "all":
        kinds = KINDS if chosen.kind == "each" else (chosen.kind,)
        made = batch(chosen.count, kinds, chosen.seed)  # type: ignore[assignment]
    with (chosen.folder / "truth.jsonl").open("w", encoding="utf-8") as record:
        for each in made:
            (chosen.folder / f"{each.name}.pdf").write_bytes(each.pdf)
            entry = {"file": f"{each.name}.pdf", **dataclasses.asdict(each.truth)}
            record.write(json.dumps(entry, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
