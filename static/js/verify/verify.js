// Checks a bundle, an export or a receipt in the order of nanovm_core/verify.py and in its words.
// A Stop ends it, with the exit code, the word and the lines that verify.py would print.
import { readBundle } from "./bundle.js";
import { readExport, readReceipt } from "./export.js";
import { decode, joined, LINE_BYTES_MAX, Malformed, orStop, shown, Stop, strict, unreadable } from "./format.js";
import { COSIGNATURE, cosignedS, ED25519, hasEd25519, parseKey } from "./proofs.js";
import { WHOLE, Work } from "./work.js";
import { membersOf } from "./zip.js";

const FILE_BYTES_MAX = 2 ** 28;

async function prepare(work) {
  work.keys = [];
  work.witnesses = [];
  for (const vkey of work.brought) {
    const wrong = (why) => unreadable(`${shown(vkey)} is no key for this: ${why}`);
    const key = await orStop(() => parseKey(vkey, ED25519, COSIGNATURE), wrong);
    (key.kind === ED25519 ? work.keys : work.witnesses).push(key);
  }
  work.canSign = await hasEd25519();
  if (work.receipt === null) return;
  const own = await verify(work.receipt, { keys: work.brought });
  work.now = "receipt";
  if (!own.receipt) throw new Stop(own.code, own.word, "Your receipt does not hold:", ...own.lines);
  [work.held, work.known] = [own.receipt, own.checkpoint];
  work.now = "form";
}

async function read(work) {
  const { size } = work.file;
  if (size > FILE_BYTES_MAX) {
    throw unreadable(`a file of ${Math.ceil(size / 2 ** 20).toLocaleString("en")} MB: a browser checks up to `
      + `${FILE_BYTES_MAX / 2 ** 20} MB. Check it with verify.py on the command line.`);
  }
  await prepare(work);
  const parts = [];
  for await (const chunk of work.raw(0, Math.min(size, LINE_BYTES_MAX))) parts.push(chunk);
  const start = joined(parts);
  if (start[0] === 0x50 && start[1] === 0x4b) return readBundle(work);
  if (start[0] !== 0x7b) throw unreadable("neither a bundle, an export nor a receipt; CSV is not verifiable");
  let held = null;
  try {
    held = strict(decode(start).replace(/[ \t-\r]+$/, ""));
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return readExport(work);
  }
  if (held.v === "nanovm-export/1") return readExport(work);
  if (size > LINE_BYTES_MAX) throw unreadable(`a receipt of more than ${LINE_BYTES_MAX} bytes`);
  return readReceipt(work, held);
}

async function sentence(work, evidence) {
  const { known } = work, { roots, size, shows, open } = evidence, lines = [shows];
  work.now = "receipt";
  work.says = known ? aboutReceipt(work, size) : null;
  const found = known && (roots.get(known.size) ?? known.root);
  if (known && (found !== known.root || (work.leaf !== null && work.leaf !== work.held.canonical_hash))) {
    const text = `the log of ${known.origin} is not the one that was seen before: at size ${known.size}`;
    throw new Stop(4, "DIVERGED", text, `expected: ${known.root}`, `found: ${found}`);
  }
  if (known && size < known.size) {
    throw new Stop(5, "STALE", `this log has ${size} envelopes; it had ${known.size} before`);
  }
  if (known && work.leaf) work.count("receipt");
  else if (known) work.skipped.receipt = work.says;
  const [grade, word] = await gradeOf(work, evidence, lines);
  const proves = [];
  proves.push("- that what was recorded is true or complete: only that it is what was recorded.");
  if (open) proves.push(`- ${open}`);
  if (!work.keys.length) proves.push("- who made it: anyone can make such a file. Bring the log's key (--key).");
  if (!known) proves.push("- that the log was not rewritten, cut or forked before you first saw it (--known).");
  else if (!roots.has(known.size)) {
    proves.push(`- that it extends the ${known.size} known envelopes: only the whole log can.`);
  }
  proves.push(work.witnesses.length ? "- that the witness is a second party: on the operator's own host it is none."
    : "- that others are shown the same log: no witness was asked for (--witness).");
  return new Stop(word === "PASS" ? 0 : 3, word, `grade: ${grade}`, ...lines, "What this does not prove:", ...proves);
}

function aboutReceipt({ held, leaf }, size) {
  const event = `Your receipt's event #${held.n + 1}`;
  if (leaf === held.canonical_hash) return `${event} is in this log, unchanged.`;
  if (leaf) return `${event} is not in it: another event is at its place (seq ${held.seq}).`;
  if (held.seq >= size) return `${event} is not in it: the log ends before its place (seq ${held.seq}).`;
  return `${event} is not in this file, which is of other runs: bring the bundle of run ${held.run} or of the whole log.`;
}

async function gradeOf(work, { unproven }, lines) {
  const signed = work.checkpoint;
  work.now = "witness";
  if (!signed || unproven) return [`UNPROVEN: ${unproven || "no checkpoint came with it"}`, "UNPROVEN"];
  if (!work.keys.length) return ["UNPINNED: no --key was brought, so this says nothing against the operator", "UNPINNED"];
  if (!work.canSign) return ["UNPROVEN: this browser cannot check Ed25519, so no signature was checked", "UNPROVEN"];
  for (const witness of work.witnesses) {
    const timeS = await cosignedS(signed, witness);
    if (timeS === null) {
      [work.checks.witness, work.skipped.witness] = [0, `${witness.name} did not cosign it.`];
      return [`SIGNED, but ${witness.name} did not cosign it`, "UNWITNESSED"];
    }
    work.count("witness");
    lines.push(`${witness.name} cosigned it at ${timeS} s (Unix time)`);
  }
  return [work.witnesses.length ? "WITNESSED" : "SIGNED", "PASS"];
}

function stagesOf(work, stop) {
  const ended = [0, 3].includes(stop.code);
  return Object.entries(work.checks).map(([name, checks]) => {
    const passed = checks > 0 && (ended || work.finished.includes(name));
    if (!ended && name === work.now) return { name, checks, state: "fail", why: stop.lines[0] };
    if (passed) return { name, checks, state: "pass", why: name === "receipt" ? work.says : "" };
    const stopped = !ended && (checks || !work.finished.includes(name)) && name !== "receipt";
    return { name, checks, state: "skip", why: stopped ? "Not finished: the first fault ended it." : work.skipped[name] };
  });
}

// The verdict on a file: code, word and lines as verify.py has them, and what came of each stage.
// Options: keys (vkeys), receipt (a File), flip ({name, at, bit}), progress, signal. What is wrong
// with the file is in the verdict; a fault of this program is thrown, and an AbortError.
export async function verify(file, options = {}) {
  const work = new Work(file, options);
  let stop = null;
  try {
    stop = await sentence(work, await read(work));
  } catch (error) {
    if (error instanceof Malformed) stop = unreadable(error.message);
    else if (error.name === "NotReadableError" || error.name === "NotFoundError") {
      stop = unreadable("the browser cannot read the file: it was changed or moved. Choose it again.");
    } else if (error instanceof Stop) stop = error;
    else throw error;
  }
  const { code, word, lines } = stop;
  const receipt = code === 1 || code === 2 ? null : work.own;
  return { code, word, lines, stages: stagesOf(work, stop), receipt, checkpoint: work.checkpoint, says: work.says };
}

// The parts of a file by name and size, of which a byte can be broken: members, or all of it.
export async function partsToBreak(file) {
  const start = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (start[0] !== 0x50 || start[1] !== 0x4b) return [{ name: WHOLE, size: file.size }];
  return [...(await membersOf(file)).values()].map(({ name, size }) => ({ name, size }));
}
