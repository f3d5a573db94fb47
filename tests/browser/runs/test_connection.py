"""The page keeps up when the connection does not: nothing is lost, doubled or shown as old."""

import re
from collections.abc import Callable

from playwright.sync_api import APIResponse, Page, Route, WebSocketRoute, expect

from tests.browser import visitor
from tests.browser.conftest import Complaints

SOCKET = re.compile(r"/ws/runs/")
NO_NETWORK = "ERR_INTERNET_DISCONNECTED|WebSocket connection|ERR_FAILED"
COUNT = """
  window.heard = 0;
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => { window.heard += 1 });
    }
  };
"""
# What the page says of its link from now on.
LINKS = """() => {
  window.links = [];
  const link = document.getElementById("link");
  const told = () => window.links.push(link.dataset.link);
  new MutationObserver(told).observe(link, { attributeFilter: ["data-link"] });
}"""


# Opens a socket beside the page's own, sends this many characters, and closes it: the server
# answers the close, in order after the message, unless it has hung up on the message before.
SEND = """size => new Promise(done => {
  const path = document.getElementById("live").dataset.socket;
  const socket = new WebSocket(location.origin.replace("http", "ws") + path);
  socket.onopen = () => { socket.send("x".repeat(size)); socket.close(1000) };
  socket.onclose = event => done(event.wasClean);
})"""


class Relay:
    """Stands between the page's sockets and the server, and remembers what passed."""

    def __init__(self, page: Page) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.frames: list[str] = []
        page.route_web_socket(SOCKET, self.opened)

    def opened(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        server = socket.connect_to_server()
        server.on_message(lambda message: self.heard(socket, str(message)))

    def heard(self, socket: WebSocketRoute, message: str) -> None:
        self.frames.append(message)
        socket.send(message)


def is_gapless(page: Page) -> bool:
    """The list holds each number from 1, once and in order."""
    return visitor.seqs(page) == list(range(1, len(visitor.seqs(page)) + 1))


def elsewhere_step(page: Page, arrive: Callable[..., Page], code: str, step: str) -> list[int]:
    """The same visitor, at another screen, lets the run go on; returns what is sealed then."""
    other = arrive(storage_state=page.context.storage_state())
    other.goto(f"/runs/{code}/")
    visitor.be_live(other)
    visitor.pause_before(other, step)
    seen = visitor.seqs(other)
    other.context.close()
    return seen


def test_what_is_missed_offline_comes_when_the_network_is_back(
    page: Page, arrive: Callable[..., Page], complaints: Complaints
) -> None:
    complaints.expect(NO_NETWORK)
    code = visitor.paused_before(page, "extract")
    page.context.set_offline(True)
    expect(page.locator("#link")).to_have_attribute("data-link", "offline")
    expect(page.locator("#link")).to_contain_text("Offline")
    start = page.locator("#act-step")
    expect(start).to_have_attribute("aria-disabled", "true")
    expect(start).to_have_attribute("aria-describedby", "link")
    expect(page.locator("#fire-tool_injection")).to_have_attribute("aria-disabled", "true")
    posted: list[str] = []
    page.on("request", lambda sent: posted.append(sent.url) if sent.method == "POST" else None)
    page.click("#fire-tool_injection", force=True)
    expect(page.locator("#say")).to_contain_text("not sent")
    sealed = elsewhere_step(page, arrive, code, "vault")
    page.context.set_offline(False)
    visitor.be_live(page)
    expect(page.locator("#rows tr")).to_have_count(len(sealed))
    assert visitor.seqs(page) == sealed
    assert is_gapless(page)
    expect(page.locator("#score")).to_contain_text("0 fired")
    assert posted == []  # what was pressed offline is not sent later


def test_a_closed_socket_is_opened_again(page: Page) -> None:
    relay = Relay(page)
    visitor.paused_before(page, "extract")
    for opened, code in enumerate((1012, 4000), start=2):
        page.evaluate(LINKS)  # it may be live again before anybody looks
        relay.sockets[-1].close(code=code)
        visitor.until(page, lambda: "live" in page.evaluate("window.links"))
        assert page.evaluate("window.links[0]") == "stale"
        assert len(relay.sockets) == opened
    visitor.pause_before(page, "vault")
    assert is_gapless(page)


def test_a_socket_takes_no_large_message(page: Page, complaints: Complaints) -> None:
    complaints.expect("WebSocket connection")
    visitor.paused_before(page, "extract")
    assert page.evaluate(SEND, 4_096)
    assert not page.evaluate(SEND, 4_097)


def test_without_a_socket_the_page_asks(page: Page) -> None:
    page.route_web_socket(SOCKET, lambda socket: socket.close(code=1011))
    visitor.begin(page, hold=True)
    link = page.locator("#link")
    expect(link).to_have_attribute("data-link", "polling")
    page.evaluate(LINKS)
    page.click("#act-start")
    visitor.shows(page, "SUCCESS")
    expect(page.locator("#rows tr").last).to_contain_text("completed")
    assert is_gapless(page)
    assert "offline" not in page.evaluate("window.links")


def test_an_old_frame_changes_nothing(page: Page) -> None:
    page.add_init_script(COUNT)
    relay = Relay(page)
    visitor.paused_before(page, "vault")
    old = [frame for frame in relay.frames if 'id="cursor"' in frame]
    visitor.pause_before(page, "propose")
    before, shown = visitor.seqs(page), page.locator("#live").inner_text()
    already = page.evaluate("window.heard")
    for frame in old:
        relay.sockets[-1].send(frame)
    page.wait_for_function("all => window.heard >= all", arg=already + len(old))  # taken or dropped
    assert old
    assert (visitor.seqs(page), page.locator("#live").inner_text()) == (before, shown)


def test_the_focus_waits_for_the_button_that_was_pressed(page: Page) -> None:
    relay = Relay(page)
    visitor.paused_before(page, "extract")
    controls = page.locator("#controls")
    step = controls.evaluate("(shown) => shown.outerHTML")
    page.locator("#act-step").focus()
    for wanted, found in (("id='elsewhere'", "controls"), ("id='act-step'", "act-step")):
        frame = re.sub(r'id="act-step"', wanted, step)
        relay.sockets[-1].send(frame.replace("<div ", '<div hx-swap-oob="true" ', 1))
        expect(page.locator(f"[{wanted}]")).to_be_attached()
        expect(page.locator(f"#{found}")).to_be_focused()


def test_a_late_answer_does_not_turn_the_page_back(page: Page) -> None:
    visitor.paused_before(page, "extract")
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/step/", lambda route: held.append((route, route.fetch())))
    page.click("#act-step")
    visitor.at_step(page, 3)
    visitor.shows(page, "PAUSED")
    seen = visitor.seqs(page)
    route, answer = held[0]
    route.fulfill(response=answer)
    expect(page.locator("#answered")).to_have_attribute("data-seq", re.compile(r"\d"))
    assert visitor.seqs(page) == seen
    assert visitor.number(page) == 3
    assert "PAUSED" in page.locator("#run-state").inner_text()
    page.unroute("**/step/")
    visitor.pause_before(page, "propose")
