"""What strangers do to a running demo, and what another visitor notices of it.

``python -m bench.strangers [ROUNDS]`` starts the demo on a folder of its own and prints a line for
each bar; 3 where one is not reached. A visitor's run and page are timed alone and then while
strangers upload documents that are slow to read, keep sockets open, and leave requests and uploads
unfinished. Linux only: visitors come from addresses of 127.0.0.0/8, figures from /proc.
"""

import os
import re
import resource
import select
import socket
import sys
import tempfile
import time
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2

from bench.kit import report
from tests.house import demo as house

ROUNDS: Final = 7
VISITOR, STRANGER = "127.0.0.9", "127.0.0.5"
DOCUMENTS, SOCKETS, HALVES, BODIES = 40, 150, 1_500, 40
COOKIES: Final = (1, 5)  # workspaces of the one address that the slow documents come from
BODY_BYTES: Final = 10_000_000
PATHS: Final = 300_000  # lines of a document of 22 kB
SLOW_MAX, CORE_MAX, MEMORY_MAX, PAGE_MAX = 3.0, 0.02, 50.0, 2.0
WATCHED_SECONDS: Final = 30
WAIT_SECONDS_MAX: Final = 120
FILES: Final = 8_192
WEB: Final = "config.web"
STATE: Final = re.compile(r'id="run-state".*?</', re.DOTALL)
ENDS: Final = re.compile("SUCCESS|FAILED|SUSPENDED")
FORM: Final = {
    "sample": "plain",
    "model": "faithful",
    "payment_method": "pm_card_visa",
    "pace": "real",
    "proposal": "",
}


class Visitor:
    """A visitor with cookies, from one address of this machine."""

    def __init__(self, port: int, address: str, cookies: httpx2.Cookies | None = None) -> None:
        self.port, self.address, url = port, address, f"http://127.0.0.1:{port}"
        headers = {"Referer": f"{url}/", "Connection": "close"}
        path = httpx2.HTTPTransport(local_address=address)
        self.line = httpx2.Client(base_url=url, transport=path, headers=headers, cookies=cookies)

    def cookie(self) -> str:
        return "; ".join(f"{each.name}={each.value}" for each in self.line.cookies.jar)

    def ask(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        """An answer; an error of the server ends the bench."""
        answer = self.line.request(method, path, timeout=WAIT_SECONDS_MAX, **sent)
        if answer.is_server_error:
            raise RuntimeError(f"{method} {path} was answered with {answer.status_code}.")
        return answer

    def start(self, document: bytes = b"") -> str:
        """Start a run, of a sample where there is no document; its page, or nothing if refused."""
        page = self.ask("GET", "/runs/new/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        if token is None:
            raise RuntimeError("The page for a new run has no form.")
        file = {"document": ("slow.pdf", document, "application/pdf")} if document else None
        fields = {**FORM, "csrfmiddlewaretoken": token[1]}
        return str(self.ask("POST", "/runs/", data=fields, files=file).headers.get("Location", ""))

    def run(self) -> float:
        """The seconds of a run, from before its form is asked for until its page says its end."""
        began = time.monotonic()
        page = self.start()
        while time.monotonic() < began + WAIT_SECONDS_MAX:
            state = STATE.search(self.ask("GET", page).text)
            if state is not None and ENDS.search(state[0]):
                return time.monotonic() - began
            time.sleep(0.02)
        raise RuntimeError(f"{page} did not end within {WAIT_SECONDS_MAX} s.")

    def page(self) -> float:
        """The seconds of the first page."""
        began = time.monotonic()
        self.ask("GET", "/")
        return time.monotonic() - began


def connected(port: int, address: str, sent: str) -> socket.socket:
    """A connection over which this was sent."""
    made = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(address, 0))
    made.sendall(sent.encode("ascii"))
    return made


def slow_document(number: int) -> bytes:
    """A PDF of 22 kB with text, which takes seconds to draw; each number gives other bytes."""
    text = b"BT /F1 12 Tf 60 780 Td (Invoice number: S-%d) Tj ET\n" % number
    content = zlib.compress(text + b"10 10 m 500 500 l 20 700 l S\n" * PATHS, 9)
    resources = b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources%s>>" % resources,
        b"<</Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream" % (len(content), content),
    ]
    made, places = b"%PDF-1.4\n", list[int]()
    for place, part in enumerate(parts, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (place, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(parts) + 1
    trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(made))
    return made + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (size, table, trailer)


@contextmanager
def demo(folder: Path) -> Iterator[tuple[int, int]]:
    """The port of a running demo, and the process id of its web server."""
    with closing(house.start(folder, DATABASE_URL="")) as started:
        web = next(pid for pid, command in house.processes_of(folder) if WEB in command)
        yield int(started.url.rpartition(":")[2]), web


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def slow_documents(visitor: Visitor, rounds: int, cookies: int) -> tuple[float, str]:
    """A run's time behind DOCUMENTS that are slow to read, in units of the same run alone.

    They come from one address and as many workspaces as there are ``cookies``.
    """
    alone = median(visitor.run() for _ in range(rounds))
    strangers = [Visitor(visitor.port, STRANGER) for _ in range(cookies)]
    sent = (strangers[n % cookies].start(slow_document(n)) for n in range(DOCUMENTS))
    taken = [page for page in sent if page]
    behind = [visitor.run() for _ in range(rounds)]
    says = f"{len(taken)} of {DOCUMENTS} taken; {alone:.2f} s alone, at most {max(behind):.2f} s"
    return median(behind) / alone, says


def idle_sockets(visitor: Visitor, web: int) -> tuple[float, str]:
    """How much of a core SOCKETS cost that show a run which has ended."""
    code = visitor.start().strip("/").rpartition("/")[2]
    visitor.run()  # by its end that one has ended, too
    with ExitStack() as held:
        for number in range(SOCKETS):
            address = f"127.0.0.{20 + number % 8}"
            opened = connected(visitor.port, address, upgrade(visitor, code))
            socket_of = held.enter_context(opened)
            if b" 101 " not in socket_of.recv(64):
                raise RuntimeError("A socket was not opened.")
        shares = [share(web) for _ in range(2)]  # at first it shows what there is
    return shares[1], f"{SOCKETS} open; {share(web):.2%} of a core without them"


def upgrade(visitor: Visitor, code: str) -> str:
    lines = [
        f"GET /ws/runs/{code}/ HTTP/1.1",
        f"Host: 127.0.0.1:{visitor.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
        f"Origin: http://127.0.0.1:{visitor.port}",
        f"Cookie: {visitor.cookie()}",
    ]
    return "\r\n".join([*lines, "", ""])


def share(pid: int) -> float:
    """The part of a core that a process uses, over a while."""
    before = cpu_seconds(pid)
    time.sleep(WATCHED_SECONDS)
    return (cpu_seconds(pid) - before) / WATCHED_SECONDS


def unfinished(visitor: Visitor, web: int, rounds: int) -> tuple[float, float, str]:
    """MB more and a page's time, in units of it alone, while requests and uploads stand still.

    The uploads come with a form's cookie: without one they are refused at once.
    """
    pages = 5 * rounds
    alone, before = median(visitor.page() for _ in range(pages)), memory_mb(web)
    posted = f"Content-Length: {BODY_BYTES}\r\nContent-Type: multipart/form-data; boundary=x"
    with ExitStack() as held:
        halves = [
            _left_open(
                held, visitor.port, f"127.0.{1 + n % 50}.{1 + n % 200}", "GET / HTTP/1.1\r\nHost"
            )
            for n in range(HALVES)
        ]
        head = f"POST /runs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: csrftoken=x\r\n{posted}\r\n\r\n"
        body = head + "x" * (BODY_BYTES - 1)
        bodies = [_left_open(held, visitor.port, f"127.0.60.{1 + n}", body) for n in range(BODIES)]
        times = [visitor.page() for _ in range(pages)]
        more = memory_mb(web) - before
        kept = sum(map(_is_held, bodies))
    says = f"{sum(made is not None for made in halves)} of {HALVES} half requests sent"
    says += f"; {kept} of {BODIES} uploads held; a page {alone * 1000:.1f} ms alone"
    return more, median(times) / alone, says


def _left_open(held: ExitStack, port: int, address: str, text: str) -> socket.socket | None:
    """The connection over which it was sent; None if that could not be done."""
    try:
        return held.enter_context(connected(port, address, text))
    except OSError:  # it was closed, or is not read
        return None


def _is_held(upload: socket.socket | None) -> bool:
    """Whether the server waits for the rest of it, and has not refused it."""
    if upload is None:
        return False
    answers = select.poll()  # select() takes no descriptor above 1,023
    answers.register(upload, select.POLLIN)
    return not answers.poll(0)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 3 where a bar is not reached."""
    rounds = int(arguments[0]) if arguments else ROUNDS
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    found = list[tuple[str, float, str, float]]()

    def told(name: str, value: float, most: float, says: str) -> None:
        found.append((f"{name}; {says}", value, "≤", most))

    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as folder:
        with demo(Path(folder) / "sockets") as (port, web):
            visitor = Visitor(port, VISITOR)
            visitor.run()
            told(f"{SOCKETS} idle sockets, of a core", *_bar(idle_sockets(visitor, web), CORE_MAX))
            more, slower, says = unfinished(visitor, web, rounds)
            told(f"{HALVES} half requests and {BODIES} uploads, MB", more, MEMORY_MAX, says)
            told("a visitor's page meanwhile", slower, PAGE_MAX, says)
        for cookies in COOKIES:
            with demo(Path(folder) / f"documents-{cookies}") as (port, _):
                visitor = Visitor(port, VISITOR)
                visitor.run()
                took = slow_documents(visitor, rounds, cookies)
            name = f"a run behind {DOCUMENTS} slow documents from {cookies} workspaces"
            told(name, *_bar(took, SLOW_MAX))
    return report.bars(found)


def _bar(found: tuple[float, str], most: float) -> tuple[float, float, str]:
    return found[0], most, found[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
