"""Projections: what model, trace and tool see of a run's slots."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nanovm_core.core.authority.arguments import PLACEHOLDER as PLACEHOLDER_FORM
from nanovm_core.core.messages import Scalar, Slots
from nanovm_core.core.vault import PREFIX

HIDDEN, CLEAR, PLACEHOLDER, TEXT = "hidden", "clear", "placeholder", "text"
MODES = (HIDDEN, CLEAR, PLACEHOLDER, TEXT)
SHOWN = (CLEAR, PLACEHOLDER, TEXT)  # an unknown mode hides
_BREAK = r"[\s,;]*"
_BREAKS = re.compile(r"[\s,;]+")
MASK_CHARS_MIN = 4  # shorter values (a country code, "12") would mask half the text


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterministicSanitizer:
    """Views of a run's slots for a model and a trace: the same slots give the same views.

    ``modes``: how the model sees each slot. Without one it is hidden: neither seen nor named.
    """

    modes: Mapping[str, str] = field(default_factory=dict)

    def for_model(self, slots: Slots, opened: Mapping[str, str]) -> dict[str, Scalar]:
        """What a model sees; ``opened`` gives the values of refs by slot.

        Personal slots are ``{{slot}}``, in a ``text`` slot too.
        """
        view: dict[str, Scalar] = {}
        for name in sorted(slots):
            mode = self.modes.get(name, HIDDEN)
            if mode == CLEAR and not _is_ref(slots[name]):
                view[name] = slots[name]
            elif mode == PLACEHOLDER:
                view[name] = "{{" + name + "}}"
            elif mode == TEXT and name in opened:
                view[name] = masked(opened[name], {k: v for k, v in opened.items() if k != name})
        return view

    def filled(self, value: object, slots: Slots) -> object:
        """The slot's value for a whole ``{{slot}}`` that the model was shown, else ``value``."""
        match = PLACEHOLDER_FORM.fullmatch(value) if isinstance(value, str) else None
        if match is None or self.modes.get(match[1]) not in SHOWN:
            return value
        return slots.get(match[1], value)


def masked(text: str, opened: Mapping[str, str]) -> str:
    """The text with each known personal value replaced by ``{{slot}}``, longest first.

    Blanks, commas and case are ignored.
    """
    slots = {value: "{{" + name + "}}" for name, value in sorted(opened.items(), reverse=True)}
    within = _signs(text)
    fit = [each for each in slots if len(each) >= MASK_CHARS_MIN and _signs(each) in within]
    if not fit:
        return text
    values = sorted(fit, key=len, reverse=True)
    pattern = "|".join(f"({_form(each)})" for each in values)  # in one pass: none is masked twice
    return re.sub(pattern, lambda m: slots[values[(m.lastindex or 1) - 1]], text, flags=re.I)


def _signs(text: str) -> str:  # equal where IGNORECASE finds texts equal: İ, ı and i are
    return _BREAKS.sub("", text.upper().casefold().replace("\u0307", ""))


def _form(value: str) -> str:
    signs = _BREAKS.sub("", value)
    if len(signs) < MASK_CHARS_MIN:
        return re.escape(value)
    return _BREAK.join(map(re.escape, signs))


def _is_ref(value: Scalar) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX)
