"""What the samples say, as their suppliers' accepted text: ``python -m …known_samples`` writes it.

To be written anew where the samples, or how text is cut into units, change.
"""

import json

import samples
from reader import ExtractionError
from reader.document import read


def marks_of_samples() -> dict[str, list[tuple[str, float]]]:
    """Mark and size of each unit of the sample files, by the supplier's name."""
    found: dict[str, dict[tuple[str, float], None]] = {}
    for each in samples.SAMPLES:
        try:
            said = read(samples.path_of(each.file).read_bytes(), pages_max=50)
        except ExtractionError:
            continue  # a sample that is damaged on purpose
        marks = found.setdefault(said.fields.payee or said.fields.seller or "", {})
        marks.update(dict.fromkeys((unit.mark, unit.size) for unit in said.units))
    return {name: sorted(marks) for name, marks in sorted(found.items()) if marks}


if __name__ == "__main__":
    text = json.dumps(marks_of_samples(), indent=1)
    samples.path_of("known_text.json").write_text(f"{text}\n")
