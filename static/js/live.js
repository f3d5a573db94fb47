// The live page: a cursor for the socket, polling when there is none, and what people are told.
"use strict";
(() => {
  const STALE_MS = 35000;
  const POLL_MS = 3000;
  const PATIENCE_MS = 1000;
  const BACK_MS = 500; // and more, at random, the oftener it failed
  const FULL_MS = 60000;
  const WORDS = {
    live: "Live",
    stale: "Stale: no updates for a while",
    offline: "Offline: no connection to the server",
    polling: "Live, updated every 3 seconds",
    off: "Connecting…",
  };
  const root = document.getElementById("live");
  const byId = (id) => document.getElementById(id);
  let last = Number(byId("cursor").dataset.seq);
  let heard = Date.now(), spoke = 0; // when something was heard, and when the socket last spoke
  let failures = 0, poll = 0, back = 0;
  let socket = null;
  let focused = "", focusedAt = 0;
  let pressed = ""; // the attack that was fired last from this page
  let awaited = null, stood = null; // the verdict that its row showed then; where a button stood
  let isFull = false; // too many pages are open: this one asks, and opens no socket for now
  let press = null; // the last one by a pointer, while that rests and the page is not scrolled

  const here = (path) => `${path}?after=${last}&mark=${byId("cursor").dataset.mark}`;

  // --- the link and its words ------------------------------------------------------------
  const say = (text) => { byId("say").textContent = text; };

  function setLink(state) {
    const link = byId("link"), was = link.dataset.link;
    if (was === state) return;
    link.dataset.link = state;
    link.textContent = WORDS[state];
    if (state === "offline" || (was === "offline" && state === "live")) say(WORDS[state]);
    reflect();
  }

  function reflect() {
    const off = byId("link").dataset.link === "offline" || byId("link").dataset.link === "stale";
    for (const button of document.querySelectorAll("[data-needs-server]")) {
      for (const [name, value] of [["aria-disabled", "true"], ["aria-describedby", "link"]]) {
        if (off) button.setAttribute(name, value);
        else button.removeAttribute(name);
      }
    }
  }

  function alive() {
    heard = Date.now();
    if (!poll) setLink("live");
  }

  // --- frames: old ones are dropped, gaps are asked for ------------------------------------
  function accept(text) {
    const found = /id="cursor"[^>]*data-seq="(\d+)" data-after="(\d+)"/.exec(text);
    if (!found) return true;
    const [, upto, after] = found.map(Number);
    if (after === last) return true;
    if (upto >= last) ask(); // at the same length something else may have changed
    return false;
  }

  // A swap may take the focused button away: its namesake gets the focus, also a later one; until
  // then the place where it was, and no other command.
  function remember() {
    const now = document.activeElement;
    if (now === byId("controls")) focusedAt = Date.now();
    else if (now && now !== document.body) [focused, focusedAt] = [now.id, Date.now()];
    else if (Date.now() - focusedAt > 500) focused = "";
  }

  function refocus() {
    const waits = [document.body, byId("controls")].includes(document.activeElement);
    if (focused && waits) (byId(focused) || byId("controls")).focus({ preventScroll: true });
  }

  // --- an attack's answer opens in the row that was pressed, and that row keeps its place -----
  const shotOf = () => document.querySelector(`#shot-${pressed} [data-attack]`)?.dataset.attack ?? "";
  const buttonOf = () => pressed && ((pressed === "all" && byId("head-all")) || byId(`fire-${pressed}`));

  function keepPlace() {
    const button = buttonOf();
    stood = button ? [button.id, button.getBoundingClientRect().top] : null;
  }

  function putBack() {
    const [id, top] = stood ?? [];
    stood = null;
    const moved = byId(id)?.getBoundingClientRect().top - top;
    if (moved) scrollBy({ top: moved, behavior: "instant" });
  }

  function keepOpen(made) {
    for (const each of made.querySelectorAll("details[id]")) if (byId(each.id)?.open) each.open = true;
  }

  // Before anybody sees a swap: what the visitor unfolded stays so, and the row is in its place.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    keepOpen(event.detail.fragment);
    if (stood !== null) return;
    keepPlace();
    queueMicrotask(() => {
      putBack();
      lookUnder();
    });
  });

  // Button and headline are to be seen together; the verdict of a press is also where the focus is.
  function showAnswer() {
    const head = document.querySelector(`#shot-${pressed} .shot-head`);
    if (awaited === null || !head || shotOf() === awaited) return;
    awaited = null;
    keepPlace();
    for (const each of document.querySelectorAll("[id^=opened-]")) each.open = each.id === `opened-${pressed}`;
    putBack();
    head.focus({ preventScroll: true });
    const bar = byId("bar").getBoundingClientRect();
    const floor = bar.height ? bar.top : innerHeight;
    const below = head.getBoundingClientRect().bottom + 8 - floor;
    const above = Math.min(0, ...[buttonOf(), head].map((it) => it.getBoundingClientRect().top - 8));
    if (below > 0 || above < 0) scrollBy({ top: below > 0 ? below : above, behavior: "instant" });
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!event.target.matches("form.injector")) return;
    pressed = event.target.action.split("/").at(-2);
    awaited = shotOf();
    document.documentElement.style.overflowAnchor = "none"; // the browser would move it, too
  });

  // Where a row cannot keep its place, the answer may bring another button under a pointer that
  // rests: a click there was meant for the one before, until the pointer or the page is moved.
  const isThere = (event) => press && Math.hypot(event.clientX - press.x, event.clientY - press.y) < 8;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("form.injector button");
    if (!button || !event.detail) return; // a key has no place
    if (isThere(event) && button.id === press.instead) {
      event.preventDefault();
      event.stopPropagation();
      say("Move the pointer to fire another attack.");
    } else press = { x: event.clientX, y: event.clientY, id: button.id, top: scrollY, instead: "" };
  }, true);
  document.addEventListener("pointermove", (event) => { if (!isThere(event)) press = null; });
  document.addEventListener("scroll", () => { if (press && press.top !== scrollY) press = null; });

  function lookUnder() {
    if (!press) return;
    const under = document.elementFromPoint(press.x, press.y)?.closest("form.injector button");
    press.instead = under && under.id !== press.id ? under.id : "";
    press.top = scrollY;
  }

  function took() {
    const rows = byId("rows");
    const now = Number(byId("cursor").dataset.seq);
    const fresh = now - last;
    last = now;
    // Rows come in a table of their own: alone, no parser would keep them.
    for (const row of document.querySelectorAll("#incoming tr")) {
      row.classList.add("is-new");
      rows.append(row);
    }
    while (rows.rows.length > 200) rows.deleteRow(0);
    document.dispatchEvent(new CustomEvent("nanovm:rows", { detail: fresh }));
    reflect();
    refocus();
    putBack();
    showAnswer();
    lookUnder();
  }

  function ask() {
    if (!navigator.onLine) return;
    htmx.ajax("GET", here(`/runs/${root.dataset.run}/events`), { source: "#live", swap: "none" });
  }

  function control(message) {
    const frame = JSON.parse(message);
    if (frame.kind === "resync") refresh();
    if (frame.kind === "full") tellFull(frame.say);
    if (frame.kind !== "hello" && frame.kind !== "heartbeat") return;
    failures = 0; // only what the server says proves the socket, not that it opened
    clearInterval(poll);
    poll = 0;
  }

  function tellFull(text) {
    const said = { className: "note is-warn", textContent: text };
    byId("flash").replaceChildren(Object.assign(document.createElement("p"), said));
    say(text);
    isFull = true;
  }

  function refresh() {
    say("View refreshed");
    location.reload();
  }

  // --- the socket: one at a time; what another says is about a link that was replaced --------
  function connect() {
    const mine = new WebSocket(here(location.origin.replace("http", "ws") + root.dataset.socket));
    socket = mine;
    mine.addEventListener("message", ({ data }) => { if (mine === socket) hear(data); });
    mine.addEventListener("close", ({ code }) => { if (mine === socket) lost(code); });
  }

  function comeBack(soon_ms) {
    clearTimeout(back);
    back = setTimeout(() => { socket.close(); connect(); }, soon_ms);
  }

  function hear(text) {
    spoke = Date.now();
    if (text.startsWith("{")) control(text);
    else if (accept(text)) swap(text);
    alive();
  }

  function swap(text) {
    const made = document.createElement("template");
    made.innerHTML = text;
    remember();
    keepPlace();
    keepOpen(made.content);
    for (const part of [...made.content.children]) {
      const [old, acts] = [byId(part.id), part.querySelector("[hx-post]")];
      if (part.id === "say") say(part.textContent);
      else if (old) {
        old.setAttribute("hx-swap-oob", "true"); // as it was drawn: htmx takes it away
        if (patch(old, part) && acts) htmx.process(byId(part.id));
      }
    }
    took();
  }

  // Only what differs is replaced: the rest is neither styled nor laid out again.
  function patch(old, made) {
    if (old.isEqualNode(made)) return false;
    if (!old.cloneNode().isEqualNode(made.cloneNode())) old.replaceWith(made);
    else {
      [...old.childNodes].slice(made.childNodes.length).forEach((each) => each.remove());
      [...made.childNodes].forEach((each, at) => (old.childNodes[at] ? patch(old.childNodes[at], each) : old.append(each)));
    }
    return true;
  }

  function lost(code) {
    failures += 1;
    if (code === 4404) return setLink("offline");
    if (!poll) setLink("stale");
    poll ||= setInterval(ask, POLL_MS);
    comeBack(isFull ? FULL_MS : BACK_MS * (1 + Math.random() * 2 ** Math.min(failures, 6)));
    isFull = false;
  }

  // --- answers to posts and polls --------------------------------------------------------------
  document.addEventListener("htmx:beforeSwap", (event) => {
    remember();
    if (event.detail.xhr.getResponseHeader("X-Resync")) refresh();
    if (!accept(event.detail.serverResponse)) event.detail.shouldSwap = false;
    if (poll) setLink("polling");
  });
  // What came of a post is news like any other: the socket brings it, or it is asked for. It is
  // seen here: the button that was pressed may be gone by now, and then no other event of its
  // request reaches the document.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    if (target.id !== "answered") return;
    const live = byId("link").dataset.link === "live";
    const sealed = Number(fragment.firstElementChild.dataset.seq);
    setTimeout(askUntilNews, live ? PATIENCE_MS : 0, sealed, Date.now());
  });
  function askUntilNews(sealed, since) {
    if (last >= sealed && spoke >= since) return;
    ask();
    if (!poll) setTimeout(askUntilNews, POLL_MS, sealed, since);
  }
  document.addEventListener("htmx:afterSettle", took);
  document.addEventListener("htmx:sendError", () => setLink("offline"));
  document.addEventListener("htmx:responseError", (event) => {
    say(`The server answered ${event.detail.xhr.status}. Nothing was changed; reload the page.`);
  });

  // --- buttons -------------------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[aria-disabled='true']");
    if (!button) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    say("No connection to the server: not sent.");
  }, true);

  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) alive(); });

  if (location.hash === "#erase-open") byId("erase-open").focus(); // back from where it led
  setLink("off");
  connect();
  setInterval(() => {
    if (!navigator.onLine) setLink("offline");
    else if (!poll && Date.now() - heard > STALE_MS) setLink("stale");
  }, 1000);
  window.addEventListener("offline", () => setLink("offline"));
  window.addEventListener("online", () => comeBack(0));
})();
