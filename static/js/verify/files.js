// Reads what can be verified: the bundle of a log or of a run (a zip), an export, a receipt.
import { Chains, isCount, isHash, isRun, isSet, isText, partsOf, readEnvelope } from "./chains.js";
import { canonical, decode, invalid, LINE_BYTES_MAX, Malformed, orStop, shown, strict, unhex, unreadable } from "./format.js";
import { Frontier, inclusionRoot } from "./proofs.js";
import { checkRoot, Openings, proofOf, range, walk } from "./walk.js";
import { collected, membersOf, unpacked } from "./zip.js";

export async function readBundle(work) {
  const members = await membersOf(work.file);
  work.count("form", members.size);
  const chunks = (name) => work.touched(name, unpacked(work.file, members.get(name)));
  const text = async (name) => {
    const bytes = await collected(chunks(name));
    return orStop(() => decode(bytes), (why) => invalid(`${name}: ${why}`));
  };
  const member = async (name, parts) => {
    const held = await text(name);
    if (held.split(/[,[]/).length - 1 > parts) throw invalid(`${name}: more than a bundle of this size has`);
    return orStop(() => canonical(held), (why) => invalid(`${name}: ${why}`));
  };
  const { log, run, size, leaves } = manifestOf(await member("manifest.json", 100));
  work.count("form", 5);
  const signed = await work.admit(await text("checkpoint"));
  work.now = "form";
  if (signed.origin !== log || signed.size !== size) {
    throw invalid("manifest and checkpoint differ", null, `${signed.origin}, ${signed.size}`, `${log}, ${size}`);
  }
  if (members.has("proofs.json") !== (run !== null)) {
    throw invalid("proofs.json belongs to the bundle of a run, and to no other");
  }
  const openings = members.has("disclosures.ndjson") ? new Openings() : null;
  if (openings) {
    work.now = "values";
    await openings.read(await text("disclosures.ndjson"));
    work.now = "form";
  }
  const parts = { lines: chunks("envelopes.ndjson"), leaves, openings };
  if (run !== null) {
    if (leaves > members.get("envelopes.ndjson").size) {
      throw invalid("manifest.json names more leaves than envelopes.ndjson has bytes");
    }
    work.now = "tree";
    parts.proofs = await proofsOf(await member("proofs.json", 70 * leaves + 2), size);
  }
  const evidence = await (run === null ? wholeLog(work, parts) : oneRun(work, run, parts));
  if (openings) evidence.shows += `; ${openings.made.size} disclosed values open their commitments`;
  return evidence;
}

function manifestOf(held) {
  const checks = { v: isText, log: isText, scope: isSet, size: isCount, leaves: isCount };
  if (!partsOf(checks, true)(held)) throw invalid("manifest.json: not v, log, scope, size and leaves");
  if (held.v !== "nanovm-bundle/1") {
    throw unreadable(`a bundle of version ${shown(held.v)}; known is nanovm-bundle/1`);
  }
  const isOne = partsOf({ kind: (kind) => kind === "run", run: isRun }, true)(held.scope);
  if (isOne || partsOf({ kind: (kind) => kind === "log" }, true)(held.scope)) {
    return { ...held, run: isOne ? held.scope.run : null };
  }
  throw invalid("manifest.json: its scope is neither the log nor a run");
}

async function wholeLog(work, { lines, leaves, openings }) {
  const { size, origin } = work.checkpoint;
  if (leaves !== size) throw invalid("not as many leaves as the signed log has", null, size, leaves);
  work.finished.push("form", "checkpoint");
  const tree = new Frontier(size, work.known?.size), chains = new Chains(origin);
  await walk(work, lines, chains, { seqs: range(leaves), tree, openings });
  await checkRoot(work, tree, chains);
  return { size, roots: tree.roots, shows: `the whole log ${origin}: ${leaves} envelopes of ${chains.heads.size} runs` };
}

async function oneRun(work, run, { lines, leaves, proofs, openings }) {
  const { size, root, origin } = work.checkpoint, chains = new Chains(origin, { lineage: run });
  work.now = "form";
  if (!leaves || leaves !== proofs.size) throw invalid("not a leaf a proof", null, proofs.size, leaves);
  work.finished.push("form", "checkpoint");
  await walk(work, lines, chains, { seqs: [...proofs.keys()].sort((a, b) => a - b), proofs, openings });
  work.finished.push("tree");
  work.now = "form";
  if (!chains.heads.has(run)) throw invalid(`there is no envelope of the run ${run} itself`);
  const more = chains.heads.size > 1 ? ` in ${chains.heads.size} chains` : "";
  const shows = `run ${run}: ${leaves} envelopes${more} in the signed log ${origin} of ${size}; `
    + (chains.unended ? "it has not ended" : "it has ended");
  const open = "that nothing was left out at the run's end, nor anything about other runs.";
  return { size, roots: new Map([[size, root]]), shows, open };
}

async function proofsOf(lists, size) {
  const found = new Map();
  for (const [seq, proof] of Object.entries(Object(lists))) {
    if (!/^(0|[1-9][0-9]{0,15})$/.test(seq) || Number(seq) >= size) {
      throw invalid(`proofs.json: no envelope ${shown(seq)} is in this log`);
    }
    found.set(Number(seq), await proofOf(proof, seq));
  }
  return found;
}

export async function readExport(work) {
  const { size } = work.file, ends = await endsOf(work);
  const { checkpoint: note, count, head, first = 0 } = await trailerOf(ends.trailer);
  if ((note !== null && !isText(note)) || !isCount(count) || !isHash(head) || !isCount(first) || !(count + first)) {
    throw invalid("the trailer's checkpoint, count, head or first is not one");
  }
  work.count("form", 4);
  const signed = note === null ? null : await work.admit(note);
  if (signed) work.finished.push("checkpoint");
  if (first) throw unreadable(`this export begins at seq ${first}: bring the --known NOTE of what came before, or a full export`);
  const lines = work.raw(0, size - ends.trailer.length - 1), { run } = ends.first;
  const whole = ends.first.seq === 0 && ends.last.seq === count - 1 && (!signed || signed.size <= count);
  const one = !whole && run && run === ends.last.run, chains = new Chains(signed?.origin, one ? { run } : {});
  const evidence = await (one ? exportedRun(work, lines, chains) : exportedLog(work, lines, chains, count));
  work.count("form");
  if (chains.leaf === head && chains.total === count) return evidence;
  throw invalid("count and head are not those of the envelopes", null, `${count}, ${head}`, `${chains.total}, ${chains.leaf}`);
}

// The last line of an export, and the places of its first and its last envelope.
async function endsOf(work) {
  const { size } = work.file, tail = await collected(work.raw(Math.max(0, size - 2 * LINE_BYTES_MAX), size));
  const start = await collected(work.raw(0, Math.min(size, LINE_BYTES_MAX))), end = tail.length - 1;
  const past = (at) => (at > 0 ? tail.lastIndexOf(10, at - 1) + 1 : 0), last = past(end), before = past(last - 1);
  const trailer = tail[end] === 10 ? tail.slice(last, end) : new Uint8Array(0);
  return { trailer, first: whereOf(start.slice(0, start.indexOf(10))), last: whereOf(tail.slice(before, Math.max(0, last - 1))) };
}

function whereOf(line) {
  try {
    return readEnvelope(line);
  } catch {
    return { seq: null, run: null }; // the walk will say where and why
  }
}

const trailerOf = (line) => orStop(() => {
  const held = strict(decode(line)), names = Object.keys(Object(held)).filter((name) => name !== "first").sort();
  if (names.join() !== "checkpoint,count,head,v") throw new Malformed("not v, count, head and checkpoint");
  if (held.v !== "nanovm-export/1") throw new Malformed("no version that is known here");
  return held;
}, (why) => unreadable(`its last line is not the trailer of a whole export (${why}): a filtered export, `
  + "a CSV or a file that was cut off is not verifiable"));

async function exportedRun(work, lines, chains) {
  const signed = work.checkpoint;
  work.skipped.tree = "The export of a run has no proofs.";
  await walk(work, lines, chains, {});
  const unproven = "the export of a run has no proofs that tie it to a signed log: ask for a bundle";
  const shows = `run ${chains.run}: ${chains.total} envelopes, each naming the one before`;
  return { size: signed?.size ?? 0, roots: new Map(signed && [[signed.size, signed.root]]), shows, unproven };
}

async function exportedLog(work, lines, chains, count) {
  const signed = work.checkpoint, size = signed?.size ?? 0, tree = new Frontier(size, work.known?.size);
  await walk(work, lines, chains, { seqs: range(count), tree });
  work.now = "tree";
  if (size > count) throw invalid("the signed log goes on after this", count, `${size} envelopes`, count);
  if (signed) await checkRoot(work, tree, chains);
  const unproven = signed && size < count ? `the last ${count - size} envelopes are later than the checkpoint` : "";
  return { size: count, roots: tree.roots, shows: `a whole log: ${count} envelopes`, unproven };
}

export async function readReceipt(work, held) {
  const checks = { run: isRun, n: isCount, seq: isCount, canonical_hash: isHash, checkpoint: isText, proof: isSet };
  if (!partsOf(checks, true)(held)) {
    throw invalid("not run, n, seq, canonical_hash, checkpoint and proof, each of its type");
  }
  work.count("form", 6);
  const { size, root: signed, origin } = await work.admit(held.checkpoint), { seq, n, canonical_hash: leaf } = held;
  work.finished.push("checkpoint");
  work.count("tree");
  const root = await inclusionRoot(unhex(leaf), seq, size, await proofOf(held.proof, seq));
  if (root !== signed) throw invalid("its hash is not there in the signed tree", seq, signed, root ?? "no proof");
  work.now = "form";
  if (n > seq) { // all that a receipt's own words can be held to
    const text = "its n, run or seq is another's: no run has so many envelopes before this one";
    throw invalid(text, seq, `n = ${seq} at most`, `n = ${n}`);
  }
  work.own = held;
  const open = "what the envelope says, and that it is this run's and n: see its bytes for that.";
  return { size, roots: new Map([[size, root]]), shows: `${leaf} stands at seq ${seq} of the signed log ${origin} of ${size}`, open };
}
