// Checks every envelope of a file, in lots that are small enough for the page to go on.
import { Blame, isHash, isRef, isText, partsOf, readEnvelope } from "./chains.js";
import { breath, canonical, hex, invalid, joined, LINE_BYTES_MAX, Malformed, orStop, unbase64, unhex, utf8 } from "./format.js";
import { inclusionRoot, leafHash } from "./proofs.js";

const [BATCH_LINES, BATCH_BYTES] = [20, 2 ** 15]; // so that no task is long

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

// Lines in lots that are checked in one task; those before a fault come before it.
async function* batchesOf(lines) {
  let [batch, bytes, fault] = [[], 0, null];
  try {
    for await (const line of lines) {
      batch.push(line);
      bytes += line.length;
      if (batch.length < BATCH_LINES && bytes < BATCH_BYTES) continue;
      yield batch;
      [batch, bytes] = [[], 0];
    }
  } catch (error) {
    fault = error;
  }
  if (batch.length) yield batch;
  if (fault) throw fault;
}

async function blamed(blame, rest, batches) {
  for (const data of rest) {
    const stop = blame.stopBy(data);
    if (stop) return stop;
  }
  for await (const batch of batches) {
    for (const data of batch) {
      const stop = blame.stopBy(data);
      if (stop) return stop;
    }
  }
  return blame.stop();
}

// Check every envelope; `seqs` are the places that there must be, null where only their order is known.
export async function walk(work, chunks, chains, { seqs = null, tree = null, proofs = null, openings = null }) {
  const batches = batchesOf(linesOf(chunks)), size = work.checkpoint?.size;
  let [count, seq] = [0, -1];
  for await (const batch of batches) {
    work.signal?.throwIfAborted();
    const leaves = await Promise.all(batch.map(leafHash));
    const roots = await Promise.all(leaves.map((leaf, at) => {
      const place = seqs?.at(count + at);
      return proofs && place !== undefined && inclusionRoot(leaf, place, size, proofs.get(place));
    }));
    for (const [at, data] of batch.entries()) {
      const leaf = hex(leaves[at]), before = seq;
      work.count("bytes");
      if (seqs && count >= seqs.length) throw invalid("an envelope more than there should be", before + 1 || null);
      seq = seqs ? seqs.at(count) : seq;
      const envelope = placed(data, leaf, seq, before, seqs);
      seq = envelope.seq;
      if (proofs) proved(work, seq, roots[at]);
      openings?.look(work, envelope);
      work.count("chain");
      try {
        chains.follow(envelope, leaf);
      } catch (error) {
        throw error instanceof Blame ? await blamed(error, batch.slice(at + 1), batches) : error;
      }
      if (seq === work.held?.seq) work.leaf = leaf;
      count += 1;
    }
    await tree?.append(leaves);
    work.progress(count);
    await breath();
  }
  work.now = "bytes";
  if (seqs && count < seqs.length) throw invalid("this envelope is missing", seqs.at(count));
  work.finished.push("bytes", "chain");
  openings?.finish(work);
}

function placed(data, leaf, seq, before, seqs) {
  let envelope = null;
  try {
    envelope = readEnvelope(data);
  } catch (error) {
    throw error instanceof Malformed ? invalid(`malformed: ${error.message}`, seq, "", leaf) : error;
  }
  if (envelope.seq !== seq && (seqs || envelope.seq <= before)) {
    throw invalid("another envelope stands here", seq, seq, envelope.seq);
  }
  return envelope;
}

function proved(work, seq, root) {
  work.count("tree");
  if (root === work.checkpoint.root) return;
  const text = "its bytes are not in the signed tree: its proof leads to another root";
  throw invalid(text, seq, work.checkpoint.root, root ?? "no proof");
}

// Disclosed values: each must open a commitment, and every commitment to its ref.
export class Openings {
  constructor() {
    Object.assign(this, { made: new Map(), unmet: new Set() });
  }

  async read(text) {
    const lines = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n").filter((line) => text || line);
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
  const { size, root } = work.checkpoint, found = size ? tree.roots.get(size) : await tree.root();
  work.count("tree", tree.size + 1);
  if (found === root) return work.finished.push("tree");
  const seq = chains.heads.size === 1 && tree.size === size ? size - 1 : null;
  throw invalid("every chain holds, but not the signed root: the newest envelope of a run was "
    + "changed, or a whole suffix of the log was rewritten", seq, root, found);
}

export function proofOf(held, seq) {
  try {
    if (!Array.isArray(held) || !held.every(isText)) throw new Malformed("not a list of base64");
    return held.map((each) => unbase64(each, 32));
  } catch (error) {
    throw error instanceof Malformed ? invalid(`its proof is ${error.message}`, seq) : error;
  }
}
