// Checks a bundle, an export or a receipt in the order of nanovm_core/verify.py and in its words.
// A Stop ends it, with the exit code, the word and the lines that verify.py would print.
import { readBundle, readExport, readReceipt } from "./files.js";
import { decode, invalid, LINE_BYTES_MAX, Malformed, orStop, shown, Stop, strict, unreadable } from "./format.js";
import { COSIGNATURE, cosignedS, ED25519, hasEd25519, parseCheckpoint, parseKey, signersOf } from "./proofs.js";
import { chunksOf, collected, membersOf, piecesOf } from "./zip.js";

const FILE_BYTES_MAX = 2 ** 28;
const WHOLE = ""; // the name of a file that has no members
// The stages, and why each is left out where nothing else is known.
const STAGES = {
  form: "", checkpoint: "No checkpoint came with it.", bytes: "The file holds no events.", values: "Nothing is disclosed.",
  chain: "The file holds no events.", tree: "Nothing ties it to a signed tree.", witness: "No witness's key was brought.",
  receipt: "No receipt was brought.",
};

// What is brought, and what was checked so far: the count, and why a stage was left out, of each.
class Work {
  constructor(file, { keys = [], receipt = null, flip = null, progress = () => {}, signal = null }) {
    Object.assign(this, { file, brought: [...new Set(keys)], receipt, flip, progress, signal, now: "form", leaf: null });
    this.checks = Object.fromEntries(Object.keys(STAGES).map((name) => [name, 0]));
    this.skipped = { ...STAGES };
    this.finished = [];
  }

  count(stage, checks = 1) {
    this.now = stage;
    this.checks[stage] += checks;
  }

  // The chunks of a member, with the byte that is to be broken in them.
  async* touched(name, chunks, from = 0) {
    let at = from;
    for await (const chunk of chunks) {
      const place = this.flip?.name === name ? this.flip.at - at : -1;
      if (place >= 0 && place < chunk.length) chunk[place] ^= 1 << this.flip.bit;
      at += chunk.length;
      yield chunk;
    }
  }

  raw(start, end) {
    return this.touched(WHOLE, chunksOf(piecesOf(this.file, start, end)), start);
  }

  // The checkpoint of a note, if the keys let it count.
  async admit(note) {
    this.now = "checkpoint";
    const wrong = (why) => invalid(`checkpoint: ${why}`);
    if (!note.isWellFormed()) throw unreadable("half a surrogate pair in the checkpoint");
    const signed = await orStop(() => parseCheckpoint(note), wrong);
    this.skipped.checkpoint = "No key was brought: its signature was not checked.";
    if (!this.canSign) this.skipped.checkpoint = this.skipped.witness = "This browser has no Ed25519 in WebCrypto.";
    else if (this.keys.length) {
      const signers = await orStop(() => signersOf(signed, this.keys), wrong);
      if (signers.some((key) => key.name !== signed.origin)) {
        throw invalid("the key is another log's", null, signed.origin, signers[0].name);
      }
      this.count("checkpoint", signers.length);
    }
    this.checkpoint = signed;
    if (this.known && this.known.origin !== signed.origin) {
      this.now = "receipt";
      throw unreadable(`your receipt is about another log, ${shown(this.known.origin)}; this is ${shown(signed.origin)}`);
    }
    return signed;
  }
}

async function prepare(work) {
  [work.keys, work.witnesses] = [[], []];
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

const isZip = async (file) => await file.slice(0, 2).text() === "PK";

async function read(work) {
  const { size } = work.file;
  if (size > FILE_BYTES_MAX) {
    throw unreadable(`a file of ${Math.ceil(size / 2 ** 20).toLocaleString("en")} MB: a browser checks up to `
      + `${FILE_BYTES_MAX / 2 ** 20} MB. Check it with verify.py on the command line.`);
  }
  await prepare(work);
  if (await isZip(work.file)) return readBundle(work);
  const start = await collected(work.raw(0, Math.min(size, LINE_BYTES_MAX)));
  if (start[0] !== 0x7b) throw unreadable("neither a bundle, an export nor a receipt; CSV is not verifiable");
  let held = { v: "nanovm-export/1" };
  try {
    held = strict(decode(start).replace(/[ \t-\r]+$/, ""));
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
  }
  if (held.v === "nanovm-export/1") return readExport(work);
  if (size > LINE_BYTES_MAX) throw unreadable(`a receipt of more than ${LINE_BYTES_MAX} bytes`);
  return readReceipt(work, held);
}

async function sentence(work, evidence) {
  const { known } = work, { roots, size, shows, open } = evidence, lines = [shows];
  work.now = "receipt";
  work.says = known ? aboutReceipt(work, size) : null;
  const found = known && (await roots.get(known.size) ?? known.root);
  if (known && (found !== known.root || (work.leaf && work.leaf !== work.held.canonical_hash))) {
    const text = `the log of ${known.origin} is not the one that was seen before: at size ${known.size}`;
    throw new Stop(4, "DIVERGED", text, `expected: ${known.root}`, `found: ${found}`);
  }
  if (known && size < known.size) {
    throw new Stop(5, "STALE", `this log has ${size} envelopes; it had ${known.size} before`);
  }
  if (known && work.leaf) work.count("receipt");
  else if (known) work.skipped.receipt = work.says;
  const [grade, word] = await gradeOf(work, evidence, lines);
  const proves = [
    "that what was recorded is true or complete: only that it is what was recorded.", open,
    !work.keys.length && "who made it: anyone can make such a file. Bring the log's key (--key).",
    !known && "that the log was not rewritten, cut or forked before you first saw it (--known).",
    known && !roots.has(known.size) && `that it extends the ${known.size} known envelopes: only the whole log can.`,
    work.witnesses.length ? "that the witness is a second party: on the operator's own host it is none."
      : "that others are shown the same log: no witness was asked for (--witness).",
  ].filter(Boolean).map((each) => `- ${each}`);
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
    const gone = ["NotReadableError", "NotFoundError"].includes(error.name);
    if (error instanceof Stop) stop = error;
    else if (gone) stop = unreadable("the browser cannot read the file: it was changed or moved. Choose it again.");
    else if (error instanceof Malformed) stop = unreadable(error.message);
    else throw error;
  }
  const { code, word, lines } = stop, { checkpoint, says } = work, receipt = code === 1 || code === 2 ? null : work.own;
  return { code, word, lines, stages: stagesOf(work, stop), receipt, checkpoint, says };
}

// The parts of a file by name and size, of which a byte can be broken: members, or all of it.
export async function partsToBreak(file) {
  if (!await isZip(file)) return [{ name: WHOLE, size: file.size }];
  return [...(await membersOf(file)).values()].map(({ name, size }) => ({ name, size }));
}
