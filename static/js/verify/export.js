// Reads an export of a log or of a run, and a receipt.
import { Chains, isCount, isHash, isRun, isText, partsOf, readEnvelope } from "./chains.js";
import { decode, invalid, joined, LINE_BYTES_MAX, Malformed, strict, unhex, unreadable } from "./format.js";
import { Frontier, inclusionRoot } from "./proofs.js";
import { checkRoot, proofOf, range, walk } from "./walk.js";

export async function readExport(work) {
  const { size } = work.file, ends = await endsOf(work);
  const { checkpoint: note, count, head, first = 0 } = trailerOf(ends.trailer);
  if ((note !== null && !isText(note)) || !isCount(count) || !isHash(head) || !isCount(first) || !(count + first)) {
    throw invalid("the trailer's checkpoint, count, head or first is not one");
  }
  work.count("form", 4);
  const signed = note === null ? null : await work.admit(note);
  if (signed) work.finished.push("checkpoint");
  const lines = work.raw(0, size - ends.trailer.length - 1);
  const whole = ends.first.seq === 0 && ends.last.seq === count - 1 && (!signed || signed.size <= count);
  const isLog = first || whole || !ends.first.run || ends.first.run !== ends.last.run;
  const { evidence, chains } = await (isLog ? exportedLog(work, lines, first, count) : exportedRun(work, lines, ends.first.run));
  work.count("form");
  if (chains.leaf === head && chains.total === count) return evidence;
  throw invalid("count and head are not those of the envelopes", null, `${count}, ${head}`, `${chains.total}, ${chains.leaf}`);
}

// The last line of an export, and the places of its first and its last envelope.
async function endsOf(work) {
  const { size } = work.file, last = [new Uint8Array([10, 10])], first = [];
  for await (const chunk of work.raw(Math.max(0, size - 2 * LINE_BYTES_MAX), size)) last.push(chunk);
  for await (const chunk of work.raw(0, Math.min(size, LINE_BYTES_MAX))) first.push(chunk);
  const tail = joined(last), end = tail.length - 1, cut = tail.lastIndexOf(10, end - 1), start = joined(first);
  const before = tail.slice(tail.lastIndexOf(10, cut - 1) + 1, cut);
  const trailer = tail[end] === 10 ? tail.slice(cut + 1, end) : new Uint8Array(0);
  return { trailer, first: whereOf(start.slice(0, start.indexOf(10))), last: whereOf(before) };
}

function whereOf(line) {
  try {
    return readEnvelope(line);
  } catch {
    return { seq: null, run: null }; // the walk will say where and why
  }
}

function trailerOf(line) {
  try {
    const held = strict(decode(line)), names = Object.keys(Object(held)).filter((name) => name !== "first").sort();
    if (names.join() !== "checkpoint,count,head,v") throw new Malformed("not v, count, head and checkpoint");
    if (held.v !== "nanovm-export/1") throw new Malformed("no version that is known here");
    return held;
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw unreadable(`its last line is not the trailer of a whole export (${error.message}): a filtered export, `
      + "a CSV or a file that was cut off is not verifiable");
  }
}

async function exportedRun(work, lines, run) {
  const signed = work.checkpoint, chains = new Chains(signed?.origin, { run });
  work.skipped.tree = "The export of a run has no proofs.";
  await walk(work, lines, chains, {});
  const unproven = "the export of a run has no proofs that tie it to a signed log: ask for a bundle";
  const shows = `run ${run}: ${chains.total} envelopes, each naming the one before`;
  return { evidence: { size: signed?.size ?? 0, roots: new Map(signed && [[signed.size, signed.root]]), shows, unproven }, chains };
}

async function exportedLog(work, lines, first, count) {
  if (first) throw unreadable(`this export begins at seq ${first}: bring the --known NOTE of what came before, or a full export`);
  const signed = work.checkpoint, size = signed?.size ?? 0;
  const tree = new Frontier(size, work.known?.size), chains = new Chains(signed?.origin);
  await walk(work, lines, chains, { seqs: range(count), tree });
  work.now = "tree";
  if (size > count) throw invalid("the signed log goes on after this", count, `${size} envelopes`, count);
  if (signed) await checkRoot(work, tree, chains);
  const unproven = signed && size < count ? `the last ${count - size} envelopes are later than the checkpoint` : "";
  return { evidence: { size: count, roots: tree.roots, shows: `a whole log: ${count} envelopes`, unproven }, chains };
}

export async function readReceipt(work, held) {
  const checks = { run: isRun, n: isCount, seq: isCount, canonical_hash: isHash, checkpoint: isText, proof: (value) => value !== null };
  if (!partsOf(checks, true)(held)) {
    throw invalid("not run, n, seq, canonical_hash, checkpoint and proof, each of its type");
  }
  work.count("form", 6);
  const { size, root: signed, origin } = await work.admit(held.checkpoint), { seq, n, canonical_hash: leaf } = held;
  work.finished.push("checkpoint");
  work.count("tree");
  const root = await inclusionRoot(unhex(leaf), seq, size, proofOf(held.proof, seq));
  if (root !== signed) throw invalid("its hash is not there in the signed tree", seq, signed, root ?? "no proof");
  work.now = "form";
  if (n > seq) { // all that a receipt's own words can be held to
    const text = "its n, run or seq is another's: no run has so many envelopes before this one";
    throw invalid(text, seq, `n = ${seq} at most`, `n = ${n}`);
  }
  work.own = held;
  const open = "what the envelope says, and that it is this run's and n: see its bytes for that.";
  const shows = `${leaf} stands at seq ${seq} of the signed log ${origin} of ${size}`;
  return { size, roots: new Map([[size, root]]), shows, open };
}
