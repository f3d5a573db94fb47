"""Typed reading of parameters, with the words Stripe refuses bad ones in."""

import re
from collections.abc import Iterable

from stripe_sandbox.errors import ApiError, invalid_request
from stripe_sandbox.forms import Form, Value

TEXT_MAX = 5000
METADATA_KEYS_MAX = 50
METADATA_KEY_MAX = 40
METADATA_VALUE_MAX = 500

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def reject_unknown(form: Form, known: Iterable[str], unsupported: Iterable[str] = ()) -> None:
    """Raise ApiError for a name Stripe does not know, or knows and this counterpart does not."""
    known_names, unsupported_names = set(known), set(unsupported)
    unknown = [name for name in form if name not in known_names | unsupported_names]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        raise invalid_request(
            f"Received unknown parameter{plural}: {', '.join(unknown)}",
            code="parameter_unknown",
            param=unknown[0],
        )
    for name in form:
        if name in unsupported_names:
            raise invalid_request(
                f"The local Stripe counterpart does not support the parameter '{name}', though "
                "Stripe does. Leave it out, or run this against Stripe's own test mode.",
                param=name,
            )


def required(form: Form, name: str) -> None:
    """Raise ApiError where ``name`` was not sent."""
    if name not in form:
        raise invalid_request(
            f"Missing required param: {name}.", code="parameter_missing", param=name
        )


def text_of(form: Form, name: str, *, length_max: int = TEXT_MAX) -> str | None:
    """Return the text of a parameter that cannot be emptied, or None where it is absent."""
    value = form.get(name)
    if value is None:
        return None
    if value == "":
        raise _empty(name)
    return _text(value, name, length_max)


def clearable_text_of(form: Form, name: str, *, length_max: int = TEXT_MAX) -> str | None:
    """Return the text, where the empty text means "unset it" and None means absent."""
    value = form.get(name)
    return None if value is None else _text(value, name, length_max)


def integer_of(
    form: Form, name: str, *, least: int | None = None, greatest: int | None = None
) -> int | None:
    """Return the integer, or None where the parameter is absent."""
    value = form.get(name)
    if value is None:
        return None
    if value == "":
        raise _empty(name)
    if not isinstance(value, str) or not _INTEGER.fullmatch(value):
        raise _bad_integer(f"Invalid integer: {_shown(value)}", name)
    number = int(value)
    if least is not None and number < least:
        raise _bad_integer(f"This value must be greater than or equal to {least}.", name)
    if greatest is not None and number > greatest:
        raise _bad_integer(f"This value must be less than or equal to {greatest}.", name)
    return number


def boolean_of(form: Form, name: str, *, label: str | None = None) -> bool | None:
    """Return the boolean, or None where the parameter is absent."""
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in {"true", "false"}:
        raise invalid_request(f"Invalid boolean: {_shown(value)}", param=label or name)
    return value == "true"


def choice_of(
    form: Form, name: str, choices: tuple[str, ...], label: str | None = None
) -> str | None:
    """Return one of ``choices``, or None where the parameter is absent."""
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(choices[:-1]) + " or " + choices[-1] if choices[1:] else choices[0]
        raise invalid_request(
            f"Invalid {label or name}: must be one of {listed}", param=label or name
        )
    return value


def object_of(form: Form, name: str) -> Form | None:
    """Return the nested parameters, or None where there are none."""
    value = form.get(name)
    if value is not None and not isinstance(value, dict):
        raise invalid_request("Invalid object", param=name)
    return value


def array_of(form: Form, name: str) -> tuple[str, ...] | None:
    """Return an array of texts, sent as ``name[]`` or as ``name[0]``; None where it is absent."""
    value = form.get(name)
    if value is None:
        return None
    if isinstance(value, dict) and all(index.isdecimal() for index in value):
        value = [value[index] for index in sorted(value, key=int)]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise invalid_request("Invalid array", param=name)
    return tuple(str(item) for item in value)


def metadata_of(form: Form) -> dict[str, str] | None:
    """Return the metadata sent; an empty value unsets its key, and ``{"": ""}`` unsets all.

    None where none was sent. How many keys an object ends up with is checked by
    ``merged_metadata``, because an update adds to what is there.
    """
    value = form.get("metadata")
    if value is None:
        return None
    if value == "":
        return {"": ""}
    if not isinstance(value, dict):
        raise invalid_request("Invalid object", param="metadata")
    for key, item in value.items():
        _check_metadata(key, item)
    return {key: str(item) for key, item in value.items()}


def merged_metadata(before: dict[str, str], change: dict[str, str] | None) -> dict[str, str]:
    """Return the metadata after a change; raises ApiError where it has too many keys."""
    if change is None:
        return before
    if "" in change:
        return {}
    after = {key: item for key, item in {**before, **change}.items() if item != ""}
    if len(after) > METADATA_KEYS_MAX:
        raise invalid_request(
            f"Metadata can have up to {METADATA_KEYS_MAX} keys, but you passed in {len(after)}.",
            param="metadata",
        )
    return after


def _check_metadata(key: str, item: Value) -> None:
    if key == "":
        raise invalid_request("Metadata keys cannot be empty.", param="metadata")
    if not isinstance(item, str):
        raise invalid_request(f"Invalid string: {_shown(item)}", param=f"metadata[{key}]")
    if len(key) > METADATA_KEY_MAX:
        raise _metadata_too_long("keys", "key", METADATA_KEY_MAX, key)
    if len(item) > METADATA_VALUE_MAX:
        raise _metadata_too_long("values", "value", METADATA_VALUE_MAX, item)


def _metadata_too_long(plural: str, noun: str, limit: int, text: str) -> ApiError:
    message = (
        f"Metadata {plural} can have up to {limit} characters, but you passed in a {noun} that is "
        f"{len(text)} characters. Invalid {noun}: {text}"
    )
    return invalid_request(message, param="metadata")


def _text(value: Value, name: str, length_max: int) -> str:
    if not isinstance(value, str):
        raise invalid_request(f"Invalid string: {_shown(value)}", param=name)
    if len(value) > length_max:
        raise invalid_request(
            f"Invalid string: {value[:20]}...; must be at most {length_max} characters",
            param=name,
        )
    return value


def _empty(name: str) -> ApiError:
    message = (
        f"You passed an empty string for '{name}'. We assume empty values are an attempt to unset "
        f"a parameter; however '{name}' cannot be unset. You should remove '{name}' from your "
        "request or supply a non-empty value."
    )
    return invalid_request(message, code="parameter_invalid_empty", param=name)


def _bad_integer(message: str, name: str) -> ApiError:
    return invalid_request(message, code="parameter_invalid_integer", param=name)


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else "an object or array"
