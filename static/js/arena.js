// The red team's box: a dry run under it soon after typing stops, and how large it is. Without a
// connection its syntax is checked here.
import { checked } from "./syntax.js";

(() => {
  const PAUSE_MS = 150;
  const LATE_MS = 5000; // an answer that takes longer is waited for no more
  const form = document.getElementById("arena-box");
  if (!form) return;
  const box = document.getElementById("arena-proposal");
  const line = document.getElementById("arena-line");
  const size = document.getElementById("arena-size");
  const pressed = document.getElementById("arena-check");
  const limit = Number(form.dataset.limit);
  const encoder = new TextEncoder();
  let timer = 0;
  let resumesAt = 0;
  let request = null;

  function show(html) {
    const made = document.createElement("template");
    made.innerHTML = html;
    const word = made.content.querySelector("[data-word]");
    line.dataset.word = word ? word.dataset.word : "WAIT";
    line.replaceChildren(made.content);
  }

  function say(word, ...parts) {
    line.dataset.word = word;
    line.replaceChildren(...parts);
  }

  function bold(text) {
    const made = document.createElement("b");
    made.textContent = text;
    return made;
  }

  // What can be said here alone. It is no verdict: nothing of the gate is in this page.
  function checkHere() {
    const fault = checked(box.value, form.elements.mode.value);
    if (!fault) return say("SOUND", "The syntax is correct. The verdict needs the server.");
    const at = fault.line ? [bold(`line ${fault.line}, column ${fault.column}`), ": "] : [];
    const what = { syntax: "Not JSON: ", twice: "A key twice: ", mode: "Unreadable: " }[fault.kind];
    say("FAULT", bold(what), ...at, `${fault.why}. Checked in the browser; the server cannot be reached.`);
  }

  async function check() {
    clearTimeout(timer);
    if (request) request.abort();
    request = new AbortController();
    if (!navigator.onLine) return checkHere();
    const asked = request;
    let late = false;
    const wait = setTimeout(() => {
      late = true;
      asked.abort();
    }, LATE_MS);
    try {
      const answer = await fetch(form.dataset.check, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { "X-Arena-Line": "1" },
        signal: asked.signal,
      });
      const text = await answer.text();
      if (asked !== request) return;
      if (answer.status === 429) {
        resumesAt = Date.now() + 1000 * Number(answer.headers.get("Retry-After") || 1);
        plan();
      }
      if (answer.ok || answer.status === 429) show(text);
      else say("WAIT", `Not checked: the server answered ${answer.status}. Reload the page.`);
    } catch (error) {
      if (asked !== request || (!late && error.name === "AbortError")) return;
      checkHere();
      resumesAt = Date.now() + LATE_MS; // the server was slow or away: ask it again
      plan();
    } finally {
      clearTimeout(wait);
    }
  }

  async function checkPressed() {
    const label = pressed.lastChild;
    const words = label.data;
    label.data = pressed.dataset.working;
    pressed.setAttribute("aria-busy", "true");
    await check();
    label.data = words;
    pressed.removeAttribute("aria-busy");
  }

  function plan() {
    clearTimeout(timer);
    timer = setTimeout(check, Math.max(PAUSE_MS, resumesAt - Date.now()));
  }

  function count() {
    const bytes = encoder.encode(box.value).length;
    const plain = form.elements.mode.value === "text";
    const over = plain && bytes > limit ? ", too many" : "";
    size.textContent = plain ? `now ${bytes.toLocaleString("en")}${over}.` : "";
  }

  form.addEventListener("input", () => {
    count();
    plan();
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter === pressed) {
      event.preventDefault();
      if (!pressed.hasAttribute("aria-busy")) checkPressed();
    } else if (!navigator.onLine) {
      event.preventDefault();
      clearTimeout(timer);
      say("WAIT", "Not proposed: no connection to the server. Your text is still here.");
    }
  });
  // What was checked here alone is asked of the gate as soon as it can be; it records nothing.
  addEventListener("online", () => {
    if (["FAULT", "SOUND"].includes(line.dataset.word)) plan();
  });
  count();
})();
