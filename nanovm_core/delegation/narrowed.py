"""Narrowed grants as bytes, for a runtime that keeps them beside the run which began under them."""

import json
from collections.abc import Mapping
from dataclasses import replace

from nanovm_core.core.authority.capabilities import Grant, form_of
from nanovm_core.core.canonical import Json, encode
from nanovm_core.delegation.blocks import read_grant
from nanovm_core.errors import RefusedError


def encoded(grants: Mapping[str, Grant]) -> bytes:
    """The canonical bytes of grants, with the ids that each is revoked with."""
    rows: dict[str, Json] = {
        tool: {"grant": form_of(grant), "from": [*grant.narrowed_from]}
        for tool, grant in grants.items()
    }
    return encode(rows)


def decoded(data: bytes) -> tuple[Grant, ...]:
    """The grants in these bytes.

    Raises:
        RefusedError: CAP-031, where they are not those of ``encoded``.
    """
    try:
        return tuple(_grant(tool, row) for tool, row in json.loads(data).items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError("CAP-031", "The narrowed grants of a run cannot be read.") from error


def _grant(tool: str, row: Mapping[str, Mapping[str, Json]]) -> Grant:
    ends_ms, origins = int(str(row["grant"]["expires_ms"])), map(str, row["from"])
    read = read_grant(tool, dict(row["grant"]), ends_ms)
    return replace(read, narrowed_from=tuple(origins))
