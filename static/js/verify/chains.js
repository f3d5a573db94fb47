// The fields of an envelope, and its place in the chain of its run.
import { canonical, decode, invalid, Malformed, parse, shown, ZEROS } from "./format.js";

const VERSION = "nanovm-envelope/2";
const HASH = /^[0-9a-f]{64}$/, UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const RUN = /^(log|agent:[a-z][a-z0-9-]{0,29})$/;
export const isSet = (value) => value !== null && value !== undefined;
export const isText = (value) => typeof value === "string";
export const isCount = (value) => typeof value === "number" && value >= 0;
export const isHash = (value) => isText(value) && HASH.test(value);
const isUuid = (value) => isText(value) && UUID.test(value);
export const isRun = (value) => isUuid(value) || (isText(value) && RUN.test(value));
export const isRef = (value) => isText(value) && value.startsWith("vault://secret/") && UUID.test(value.slice(15));
const isList = Array.isArray;
const isObject = (value) => isSet(value) && typeof value === "object" && !isList(value);
const isTexts = (value) => isObject(value) && Object.values(value).every(isText);
const all = (names, check) => Object.fromEntries(names.map((name) => [name, check]));

// Whether every part of an object has a check here and passes it; `whole`: and none is missing.
export function partsOf(checks, whole = false) {
  return (value) => isObject(value) && (!whole || Object.keys(value).length === Object.keys(checks).length)
    && Object.entries(value).every(([name, part]) => Object.hasOwn(checks, name) && checks[name](part));
}

const isSecret = partsOf({ slot: isText, ref: isRef, c: isHash }, true);
const NEEDED = ["v", "log", "seq", "run", "n", "kind", "at_ms", "prev"];
const FIELDS = {
  ...all(["v", "log", "kind", "step", "actor", "tool", "idempotency_key", "rule", "outcome", "decided_by"], isText),
  ...all(["seq", "n", "at_ms"], isCount),
  ...all(["program", "policy", "snapshot", "prev"], isHash),
  ...all(["in", "out"], isSet),
  run: isRun,
  state: partsOf(all(["from", "event", "to"], isText)),
  decision: partsOf({ verdict: isText, rules: isList }),
  warrant: partsOf({ id: isText, expires_ms: isCount }),
  budget: partsOf(all(["reserved", "left", "spent", "released"], isSet)),
  secrets: (value) => isList(value) && value.every(isSecret),
  origin: isTexts,
  given: isObject,
  calls: (value) => isCount(value) || isList(value),
};
const PLAIN = ["intent", "result", "refused", "ignored", "failed", "suspended", "resumed"];
const ERASURE = ["erasure_requested", "erasure_done", "erasure_refused"];
const ON_LOG = ["capability", "policy", "budget", "key", "restore", "supplier"];
const AFTER_TERMINAL = ["refused", "ignored", "integrity", ...ERASURE];
// The fields of one kind alone. Of the kinds in OPEN the format leaves further ones free.
const OWN = {
  terminal: { length: isCount },
  resumed: { agreed: isTexts },
  integrity: { at: Number.isInteger, expected: isText, found: isText },
  genesis: { lineage: isUuid, incarnation: isCount, of: isText },
  message: all(["from", "to", "of", "chain"], isText),
  settlement: { tokens: isCount },
  observation: { at: isCount, count: isCount, hash: isHash, drifts: isList },
};
const OPEN = ["genesis", "alert", "upgraded", ...ON_LOG.filter((kind) => kind !== "supplier"), ...ERASURE];
const KINDS = [...PLAIN, ...OPEN, ...Object.keys(OWN), "agent", "supplier"];

function checkOf(name, kind) {
  if (Object.hasOwn(FIELDS, name)) return FIELDS[name];
  if (Object.hasOwn(OWN, kind) && Object.hasOwn(OWN[kind], name)) return OWN[kind][name];
  return OPEN.includes(kind) ? isSet : () => false;
}

// The fields of an envelope; Malformed where bytes, names or types are not the format's.
export function readEnvelope(data) {
  const envelope = canonical(decode(data));
  if (!isObject(envelope) || !NEEDED.every((name) => Object.hasOwn(envelope, name))) {
    throw new Malformed("not an envelope, or without a field that each must have");
  }
  const { v, kind, run } = envelope;
  if (v !== VERSION) throw new Malformed(`the version ${shown(v)} is unknown`);
  if (!KINDS.includes(kind) || (ON_LOG.includes(kind) && run !== "log")) {
    throw new Malformed(`the kind ${shown(kind)} is unknown in such a run, or in ${v}`);
  }
  const bad = Object.keys(envelope).find((name) => !checkOf(name, kind)(envelope[name]));
  if (bad === undefined) return envelope;
  throw new Malformed(`the field ${shown(bad)} is unknown in this kind, or not of its type`);
}

// An envelope does not name its predecessor: the next of the run, in `rest`, tells which was changed.
async function blame({ seq, run, prev }, leaf, head, rest) {
  const text = "its bytes are not those that the next envelope of its run names";
  if (!head.next || prev === ZEROS) return invalid("where a run begins prev is zero, and nowhere else", seq, head.leaf, prev);
  for await (const { data } of rest) {
    let after = null;
    try {
      after = Object(parse(decode(data)));
    } catch {
      continue; // its own fault is not the first one
    }
    if (after.run !== run) continue;
    if (![leaf, ZEROS].includes(after.prev)) return invalid(text, seq, after.prev ?? null, leaf);
    break;
  }
  return invalid(`${text} (seq ${seq})`, head.seq, prev, head.leaf);
}

const START = { leaf: ZEROS, seq: 0, next: 0, ended: false };

// Follows every chain of a log, of one run, or of a lineage (what its genesis names, else itself).
export class Chains {
  constructor(origin, { run = null, lineage = null } = {}) {
    Object.assign(this, { origin, run, lineage, heads: new Map(), leaf: ZEROS, total: 0, unended: 0 });
  }

  // Check the envelope's place in its run; `rest` may be read to tell which one is bad.
  async follow(envelope, leaf, rest) {
    const { run, n, seq, kind, log, prev } = envelope;
    this.origin ||= log;
    const head = this.heads.get(run) ?? START;
    const named = head.next ? this.lineage ?? run : envelope.lineage ?? run;
    if (log !== this.origin || (this.run ?? run) !== run || (this.lineage ?? named) !== named) {
      throw invalid("of another log or run", seq, `${this.origin}, ${this.lineage ?? this.run}`, `${log}, ${run}`);
    }
    if (n !== head.next) throw invalid("not the next n of its run", seq, head.next, n);
    if (kind === "integrity" && n) throw sealedDamage(envelope, head);
    if (prev !== head.leaf) throw await blame(envelope, leaf, head, rest);
    if ((kind === "genesis") !== (n === 0) || (head.ended && !AFTER_TERMINAL.includes(kind))) {
      throw invalid(`no ${kind} may stand at n ${n} of this run`, seq);
    }
    if (kind === "terminal" && envelope.length !== n + 1) {
      throw invalid("not the length of its run", seq, n + 1, envelope.length ?? "none");
    }
    const ended = head.ended || kind === "terminal";
    this.heads.set(run, { leaf, seq, next: n + 1, ended });
    Object.assign(this, { leaf, total: this.total + 1 });
    this.unended += Number(n === 0) - Number(ended && !head.ended);
  }
}

// An `integrity` envelope tells that its run is damaged: it is never more than INVALID.
function sealedDamage({ seq, run, at, expected = "", found = "" }, head) {
  const text = `the log itself seals, at seq ${seq}, that n ${at} of run ${run} is damaged`;
  const last = at === head.next - 1;
  return invalid(text, last ? head.seq : seq, expected, last ? head.leaf : found);
}
