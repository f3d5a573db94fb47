// The page that checks a file: what was chosen, dropped or came in the address is checked here, and
// sent nowhere.
import { parseKey } from "./proofs.js";
import { partsToBreak, verify } from "./verify.js";

const byId = (id) => document.getElementById(id);
const checker = byId("checker");
const TITLES = {
  form: "File, manifest, trailer", checkpoint: "Signed checkpoint", bytes: "Canonical bytes and fields", values: "Disclosed values",
  chain: "Chain of hashes", tree: "Merkle tree: root, inclusion", witness: "Witness cosignatures", receipt: "Your receipt",
};
const TONES = { pass: "is-ok", fail: "is-failed", skip: "" }, INTACT = [0, 3];
const CHOOSE = "Choose a bundle (.zip), a whole export (.ndjson) or a receipt (.json) that nanovm wrote.";
const KEEP = "Keep this file, and ask the operator of the log.";
const SAID = {
  PASS: ["is-ok", "Verified under your own key.", ""],
  UNPINNED: ["is-warn", "Intact. Not verified against your own key (UNPINNED).", "Bring the key that you saved earlier."],
  UNPROVEN: ["is-warn", "Nothing is wrong, but not everything is proved (UNPROVEN).", ""],
  UNWITNESSED: ["is-warn", "Signed, but not by the witness that you named (UNWITNESSED).", ""],
  INVALID: ["is-failed", "Not intact (INVALID).", KEEP],
  DIVERGED: ["is-failed", "Not the history that your receipt shows (DIVERGED).", KEEP],
  STALE: ["is-failed", "Shorter than the log that your receipt is from (STALE).", "Download it anew; if it stays so, the log was cut."],
  UNREADABLE: ["is-failed", "Not a file that can be checked (UNREADABLE).", CHOOSE],
};
const REPORT = "Not seen. Please report this file: verify.py may see what this page does not.";
const UNVOUCHED = "Not seen: a signature whose key you did not bring, and a receipt's run and number, prove nothing by themselves.";
const isUnvouched = (flip) => flip.name === "checkpoint" || !file;
let [file, receipt, running] = [null, null, null];

const keysOf = () => byId("keys").value.split(/\s+/).filter(Boolean);

const made = (name, textContent) => Object.assign(document.createElement(name), { textContent });

function row({ name, state, checks, why }) {
  const line = byId("stage").content.cloneNode(true), [title, word, count, note] = line.querySelectorAll("[data-label] > *");
  [title.textContent, count.textContent, note.textContent] = [TITLES[name], checks.toLocaleString("en"), why || "–"];
  Object.assign(word, { textContent: state, className: `chip ${TONES[state]}` });
  return line;
}

// Whose key signed: this installation's has another id for each log, which its name goes into.
async function foreign({ checkpoint }) {
  const [, raw] = /^[^+]*\+[^+]*\+(.*)$/.exec(checker.dataset.key) ?? [];
  if (!raw || !checkpoint) return "";
  for (const { name, id } of checkpoint.signatures.filter((each) => each.name === checkpoint.origin)) {
    if (await parseKey(`${name}+${id}+${raw}`, 1).then(() => true, () => false)) return "";
  }
  return `Signed by another installation, or by an older key of this one: its log is ${checkpoint.origin}.`;
}

function show(verdict, flip, origin) {
  const [tone, headline, advice] = SAID[verdict.word];
  const at = verdict.lines.indexOf("What this does not prove:");
  const about = [verdict.says, verdict.lines[at < 0 ? 0 : 1], origin, flip ? "" : advice].filter(Boolean);
  const said = about.map((text) => `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`).join(" ");
  byId("headline").className = `note ${tone}`;
  byId("headline").replaceChildren(made("strong", headline), ` ${said}`);
  byId("stages").replaceChildren(...verdict.stages.map(row));
  byId("open").replaceChildren(...(at < 0 ? [] : verdict.lines.slice(at + 1)).map((line) => made("li", line.slice(2))));
  byId("unproved").hidden = at < 0;
  byId("lines").textContent = [verdict.word, ...verdict.lines].join("\n");
  byId("broken").hidden = !flip;
  if (flip) {
    const of = `Bit ${flip.bit} of byte ${flip.at.toLocaleString("en")} of ${flip.name || "the file"}`;
    byId("broken").textContent = `${of} was flipped in a copy in memory. ${!INTACT.includes(verdict.code) ? "Seen." : isUnvouched(flip) ? UNVOUCHED : REPORT}`;
  } else byId("break").disabled = !INTACT.includes(verdict.code);
  byId("verdict").hidden = false;
}

async function check(flip = null) {
  if (!file && !receipt) return;
  running?.abort();
  const mine = running = new AbortController(), say = (text) => { byId("progress").textContent = text; };
  const progress = (events) => say(`${events.toLocaleString("en")} events checked…`);
  const names = [file, receipt].filter(Boolean).map((each) => each.name).join(" with ");
  [byId("cancel").hidden, byId("verdict").hidden] = [false, true];
  say("Checking…");
  try {
    const options = { keys: keysOf(), receipt: file && receipt, flip, progress, signal: mine.signal };
    const verdict = await verify(file ?? receipt, options);
    const origin = await foreign(verdict);
    if (mine.signal.aborted) return; // another file was chosen meanwhile
    show(verdict, flip, origin);
    say(`Checked ${names} in this browser.`);
  } catch (error) {
    if (mine !== running) return;
    say(error.name === "AbortError" ? "Cancelled." : "This page failed. Check the file with verify.py on the command line.");
    if (error.name !== "AbortError") throw error;
  } finally {
    if (mine === running) byId("cancel").hidden = true;
  }
}

// Whatever else it is, the check says.
const isReceipt = async (each) => each.size <= 2 ** 20
  && each.text().then((text) => Object.hasOwn(JSON.parse(text), "canonical_hash")).catch(() => false);

async function take(files) {
  [file, receipt] = [files.length > 1 ? null : file, files.length > 1 ? null : receipt];
  for (const each of files) {
    if (await isReceipt(each)) receipt = each;
    else [file, receipt] = [each, files.length > 1 ? receipt : null];
  }
  await check();
}

// A receipt in the fragment never reaches the server.
async function fromAddress() {
  const text = /^#r=(.+)$/.exec(location.hash)?.[1];
  if (!text) return;
  let bytes = text; // of an address that was cut off: the check says that it holds no receipt
  try {
    bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  } catch { /* as it is */ }
  await take([new File([bytes], "the receipt in the address")]);
}

async function breakOne() {
  const parts = await partsToBreak(file ?? receipt);
  let at = Math.floor(Math.random() * parts.reduce((sum, { size }) => sum + size, 0));
  const { name } = parts.find(({ size }) => at < size || ((at -= size), false));
  await check({ name, at, bit: Math.floor(Math.random() * 8) });
}

if (globalThis.crypto?.subtle) {
  [byId("insecure").hidden, byId("check").hidden] = [true, false];
  byId("files").addEventListener("change", (event) => take([...event.target.files]));
  byId("check").addEventListener("submit", (event) => {
    event.preventDefault();
    check();
  });
  byId("break").addEventListener("click", breakOne);
  byId("cancel").addEventListener("click", () => running.abort());
  for (const name of ["dragover", "drop"]) checker.addEventListener(name, (event) => event.preventDefault());
  checker.addEventListener("drop", (event) => take([...event.dataTransfer.files]));
  addEventListener("hashchange", fromAddress);
  fromAddress();
}
