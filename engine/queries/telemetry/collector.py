"""The collector: spans to it over OTLP/HTTP, and whether it really took all of them."""

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import requests
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from engine.clock import monotonic_ns
from engine.ops.processes import ProcessError

ANSWER_BYTES_MAX = 16_384
OTLP = "OTEL_EXPORTER_OTLP"
HEADERS = f"Correct {OTLP}_HEADERS."
NEXT = {401: HEADERS, 403: HEADERS, 404: f"Correct {OTLP}_ENDPOINT: it ends before /v1/traces."}
AWAY = f"The collector does not answer. Start it, or correct {OTLP}_…; the log says more."
NO_OTLP = f"The collector's answer is no OTLP over HTTP. Correct {OTLP}_ENDPOINT."


class Collector:
    """A collector as the variables ``OTEL_EXPORTER_OTLP_…`` name it.

    Raises:
        ProcessError: none is named, or it cannot be sent to so; says what to set.
    """

    def __init__(self) -> None:
        if not _variable("ENDPOINT"):
            text = f"Set {OTLP}_ENDPOINT, as in http://localhost:4318, then start again."
            raise ProcessError(f"No collector is named, so nothing can be exported. {text}")
        if _variable("PROTOCOL") not in ("", "http/protobuf"):
            raise ProcessError(f"{OTLP}_PROTOCOL must be http/protobuf. Unset it, and start again.")
        if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            raise ProcessError("OTEL_SDK_DISABLED is set. Unset it to export, then start again.")
        session = requests.Session()
        session.stream = True  # of an answer without end, no more is read than ``_keep`` reads
        session.hooks["response"] = [self._keep]
        self._exporter = OTLPSpanExporter(session=session)
        self._answers: list[tuple[int, str, bytes]] = []

    def send(self, spans: Sequence[ReadableSpan]) -> str:
        """Send spans; empty where the collector took all, else why not and what to do."""
        self._answers.clear()
        result = self._exporter.export(spans)
        why = _fault(*self._answers[-1]) if self._answers else AWAY
        return why if why or result is SpanExportResult.SUCCESS else AWAY

    def _keep(self, response: requests.Response, *_: object, **options: Any) -> None:
        """Read the first bytes of an answer, and no longer than the request may take."""
        until_ns, data, raw = monotonic_ns() + int(options["timeout"] * 1e9), b"", response.raw
        with closing(response):
            while len(data) <= ANSWER_BYTES_MAX and (part := raw.read1(ANSWER_BYTES_MAX, True)):
                data += part
                if monotonic_ns() > until_ns:
                    raise requests.Timeout("The answer takes too long.")
        kind = response.headers.get("Content-Type", "")
        self._answers.append((response.status_code, kind.lower(), data))


def _fault(status: int, kind: str, data: bytes) -> str:
    """Why an answer does not say that all spans were taken; empty where it does."""
    if not 200 <= status < 300:
        what = "redirects: it answers" if 300 <= status < 400 else "answers"
        return f"The collector {what} {status}. {NEXT.get(status, 'Look at its own log.')}"
    answer = ExportTraceServiceResponse()
    try:
        if "json" in kind:
            json_format.Parse(data or b"{}", answer, ignore_unknown_fields=True)
        else:
            answer.ParseFromString(data)
    except (DecodeError, json_format.ParseError, UnicodeDecodeError):
        return NO_OTLP
    if len(data) > ANSWER_BYTES_MAX:
        return NO_OTLP
    rejected = answer.partial_success.rejected_spans
    return f"The collector rejects {rejected} spans. Look at its own log." if rejected else ""


def _variable(name: str) -> str:
    """A setting of traces, which goes before that of all signals."""
    own = os.environ.get(f"{OTLP}_TRACES_{name}", "").strip()
    return own or os.environ.get(f"{OTLP}_{name}", "").strip()
