// Reads the bundle of a log or of a run: a zip.
import { Chains, isCount, isRun, isText, partsOf } from "./chains.js";
import { breath, canonical, canonicalLists, invalid, orStop, PROOFS_AT_ONCE, shown, unreadable } from "./format.js";
import { Frontier } from "./proofs.js";
import { checkRoot, Openings, proofOf, range, walk } from "./walk.js";
import { membersOf, textOf, unpacked } from "./zip.js";
const counted = (text, marks) => marks.reduce((sum, mark) => sum + text.split(mark).length - 1, 0);

export async function readBundle(work) {
  const members = await membersOf(work.file);
  work.count("form", members.size);
  const chunks = (name) => work.touched(name, unpacked(work.file, members.get(name)));
  const text = (name) => orStop(() => textOf(chunks(name)), (why) => invalid(`${name}: ${why}`));
  const member = async (name, parts, read) => {
    const held = await text(name);
    const fault = counted(held, [",", "["]) > parts ? "more than a bundle of this size has" : "";
    if (fault) throw invalid(`${name}: ${fault}`);
    return orStop(() => read(held), (why) => invalid(`${name}: ${why}`));
  };
  const { log, run, size, leaves } = manifestOf(await member("manifest.json", 100, canonical));
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
  const lines = chunks("envelopes.ndjson");
  let evidence = null;
  if (run === null) evidence = await wholeLog(work, lines, leaves, openings);
  else {
    if (leaves > members.get("envelopes.ndjson").size) {
      throw invalid("manifest.json names more leaves than envelopes.ndjson has bytes");
    }
    work.now = "tree";
    const proofs = await proofsOf(await member("proofs.json", 70 * leaves + 2, canonicalLists), signed.size);
    evidence = await oneRun(work, lines, leaves, run, proofs, openings);
  }
  if (openings) evidence.shows += `; ${openings.made.size} disclosed values open their commitments`;
  return evidence;
}

function manifestOf(held) {
  const checks = { v: isText, log: isText, scope: (value) => value !== null, size: isCount, leaves: isCount };
  if (!partsOf(checks, true)(held)) throw invalid("manifest.json: not v, log, scope, size and leaves");
  if (held.v !== "nanovm-bundle/1") {
    throw unreadable(`a bundle of version ${shown(held.v)}; known is nanovm-bundle/1`);
  }
  const isLog = partsOf({ kind: (kind) => kind === "log" }, true)(held.scope);
  const isOne = partsOf({ kind: (kind) => kind === "run", run: isRun }, true)(held.scope);
  if (!isLog && !isOne) throw invalid("manifest.json: its scope is neither the log nor a run");
  return { ...held, run: isOne ? held.scope.run : null };
}

async function wholeLog(work, lines, leaves, openings) {
  const { size, origin } = work.checkpoint;
  if (leaves !== size) throw invalid("not as many leaves as the signed log has", null, size, leaves);
  work.finished.push("form", "checkpoint");
  const tree = new Frontier(size, work.known?.size), chains = new Chains(origin);
  await walk(work, lines, chains, { seqs: range(leaves), tree, openings });
  await checkRoot(work, tree, chains);
  const shows = `the whole log ${origin}: ${leaves} envelopes of ${chains.heads.size} runs`;
  return { size, roots: tree.roots, shows };
}

async function oneRun(work, lines, leaves, run, proofs, openings) {
  const { size, root, origin } = work.checkpoint;
  work.now = "form";
  if (!leaves || leaves !== proofs.size) throw invalid("not a leaf a proof", null, proofs.size, leaves);
  work.finished.push("form", "checkpoint");
  const chains = new Chains(origin, { lineage: run });
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
  for (const [seq, proof] of lists) {
    if (!/^(0|[1-9][0-9]{0,15})$/.test(seq) || Number(seq) >= size) {
      throw invalid(`proofs.json: no envelope ${shown(seq)} is in this log`);
    }
    found.set(Number(seq), proofOf(proof, seq));
    if (found.size % PROOFS_AT_ONCE === 0) await breath();
  }
  return found;
}
