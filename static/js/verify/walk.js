// Checks every envelope of a file, and lets the page go on.
import { isHash, isRef, isText, partsOf, readEnvelope } from "./chains.js";
import { canonical, hex, invalid, joined, LINE_BYTES_MAX, Malformed, orStop, unbase64, unhex, utf8 } from "./format.js";
import { inclusionRoot, leafHash } from "./proofs.js";

const EVENTS_AT_ONCE = 20; // so that no task is long
// What is awaited of a cipher or a stream may come without a new task.
const channel = new MessageChannel();
channel.port1.start();
const breath = () => new Promise((go) => {
  channel.port1.addEventListener("message", go, { once: true });
  channel.port2.postMessage(0);
});

async function* linesOf(chunks) {
  let rest = [], size = 0;
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(10); end >= 0 || at < chunk.length; end = chunk.indexOf(10, at)) {
      rest.push(chunk.slice(at, end < 0 ? chunk.length : end));
      size += rest.at(-1).length;
      if (size > LINE_BYTES_MAX) throw invalid(`a line is larger than ${LINE_BYTES_MAX} bytes`);
      if (end < 0) break;
      yield joined(rest);
      [rest, size, at] = [[], 0, end + 1];
    }
  }
  if (size) throw invalid("the last line has no newline: something was cut off");
}

// The lines and their hashes, some of which are made ahead; those before a fault come before it.
async function* hashed(lines) {
  const ahead = [];
  let fault = null;
  try {
    for await (const data of lines) {
      ahead.push({ data, hash: leafHash(data) });
      if (ahead.length > EVENTS_AT_ONCE) yield ahead.shift();
    }
  } catch (error) {
    fault = error;
  }
  yield* ahead;
  if (fault) throw fault;
}

// Check every envelope; `seqs` are the places that there must be, null where only their order is known.
export async function walk(work, chunks, chains, { seqs = null, tree = null, proofs = null, openings = null }) {
  const lines = hashed(linesOf(chunks));
  let [count, seq] = [0, -1];
  for await (const { data, hash: made } of lines) {
    if (count % EVENTS_AT_ONCE === 0) {
      work.signal?.throwIfAborted();
      work.progress(count);
      await breath();
    }
    const hash = await made, leaf = hex(hash), before = seq;
    work.count("bytes");
    if (seqs && count >= seqs.length) throw invalid("an envelope more than there should be", before + 1 || null);
    seq = seqs ? seqs.at(count) : seq;
    const envelope = await orStop(() => readEnvelope(data), (why) => invalid(`malformed: ${why}`, seq, "", leaf));
    if (envelope.seq !== seq && (seqs || envelope.seq <= before)) {
      throw invalid("another envelope stands here", seq, seq, envelope.seq);
    }
    seq = envelope.seq;
    if (proofs) await prove(work, seq, hash, proofs.get(seq));
    tree?.append(hash);
    openings?.look(work, envelope);
    work.count("chain");
    await chains.follow(envelope, leaf, lines);
    if (seq === work.held?.seq) work.leaf = leaf;
    count += 1;
  }
  work.now = "bytes";
  if (seqs && count < seqs.length) throw invalid("this envelope is missing", seqs.at(count));
  work.finished.push("bytes", "chain");
  openings?.finish(work);
}

async function prove(work, seq, hash, proof) {
  work.count("tree");
  const { root, size } = work.checkpoint, found = await inclusionRoot(hash, seq, size, proof);
  const text = "its bytes are not in the signed tree: its proof leads to another root";
  if (found !== root) throw invalid(text, seq, root, found ?? "no proof");
}

// Disclosed values: each must open a commitment, and every commitment to its ref.
export class Openings {
  constructor() {
    Object.assign(this, { made: new Map(), unmet: new Set() });
  }

  async read(text) {
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    const wrong = (why) => invalid(`disclosures.ndjson, line ${this.made.size + 1}: ${why}`);
    for (const line of lines) await orStop(() => this.open(canonical(line)), wrong);
  }

  async open(held) {
    if (!partsOf({ ref: isRef, value: isText, r: isText }, true)(held)) throw new Malformed("not ref, value and r");
    const { ref, r, value } = held;
    if (this.made.has(ref)) throw new Malformed("a ref that was disclosed before");
    const use = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", isHash(r) ? unhex(r) : unbase64(r, 32), use, false, ["sign"]);
    const opened = await crypto.subtle.sign("HMAC", key, utf8(`nanovm/secret/v1\0${ref}\0${value}`));
    this.made.set(ref, hex(new Uint8Array(opened)));
    this.unmet.add(ref);
  }

  look(work, { seq, secrets = [] }) {
    for (const { ref, c } of secrets.filter((each) => this.made.has(each.ref))) {
      work.count("values");
      const text = `what is disclosed of ${ref} does not open its commitment`;
      if (this.made.get(ref) !== c) throw invalid(text, seq, c, this.made.get(ref));
      this.unmet.delete(ref);
    }
  }

  finish(work) {
    work.now = "values";
    const [ref] = [...this.unmet].sort();
    if (ref) throw invalid(`nothing here commits to the disclosed ${ref}`);
    work.finished.push("values");
  }
}

export const range = (length) => ({ length, at: (index) => (index < length ? index : undefined) });

// The root over the leaves must be the one that was signed.
export async function checkRoot(work, tree, chains) {
  const { size, root } = work.checkpoint, found = await tree.roots.get(size);
  work.count("tree", tree.size + 1);
  if (found === root) return work.finished.push("tree");
  const seq = chains.heads.size === 1 && tree.size === size ? size - 1 : null;
  throw invalid("every chain holds, but not the signed root: the newest envelope of a run was "
    + "changed, or a whole suffix of the log was rewritten", seq, root, found);
}

export const proofOf = (held, seq) => orStop(() => {
  if (!Array.isArray(held) || !held.every(isText)) throw new Malformed("not a list of base64");
  return held.map((each) => unbase64(each, 32));
}, (why) => invalid(`its proof is ${why}`, seq));
