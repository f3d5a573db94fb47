// The tree (RFC 9162 §2.1), signed notes, keys and checkpoints (C2SP).
import { hex, Malformed, sha256, unbase64, unhex, utf8 } from "./format.js";

export const [ED25519, COSIGNATURE] = [0x01, 0x04]; // C2SP signed-note, tlog-cosignature
const SIGNATURES_MAX = 100; // lines of one note
const P = 2n ** 255n - 19n;
// The y of the points of small order: anybody can sign for such a key (RFC 8032 §5.1).
const SMALL = [0n, 1n, P - 1n, ...["c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"].map((each) => number(unhex(each)))];

function number(bytes) {
  return BigInt(`0x${hex(bytes.slice().reverse())}`);
}

const half = (count) => Math.floor(count / 2); // sizes go beyond 32 bits
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
export const leafHash = (data) => sha256(new Uint8Array([0]), data);
const nodeHash = async (left, right) => sha256(new Uint8Array([1]), await left, await right);

// A tree that grows at the right; `roots` gets its root (hex) at each wanted size, and at 0. All hashes
// are promises, so that nothing waits for one before it is needed.
export class Frontier {
  constructor(...wanted) {
    Object.assign(this, { size: 0, peaks: [], roots: new Map([[0, EMPTY]]), wanted });
  }

  append(leaf) {
    let node = leaf;
    for (let size = this.size; size % 2; size = half(size)) node = nodeHash(this.peaks.pop(), node);
    this.peaks.push(node);
    this.size += 1;
    if (!this.wanted.includes(this.size)) return;
    const root = this.peaks.reduceRight((right, left) => nodeHash(left, right));
    this.roots.set(this.size, Promise.resolve(root).then(hex));
  }
}

// The root (hex) that an inclusion proof leads to; null for no proof (§2.1.3.2).
export async function inclusionRoot(leaf, index, size, proof) {
  if (index >= size) return null;
  let [fn, sn, root] = [index, size - 1, leaf];
  for (const each of proof) {
    if (sn === 0) return null;
    if (fn % 2 || fn === sn) {
      root = nodeHash(each, root);
      while (fn % 2 === 0 && fn) [fn, sn] = [half(fn), half(sn)];
    } else root = nodeHash(root, each);
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 ? hex(await root) : null;
}

const isName = (name) => name !== "" && !/[\p{C}\p{Z}+]/u.test(name);
const same = (a, b) => a.name === b.name && a.id === b.id;

export async function parseKey(vkey, ...kinds) {
  const [, name, short, encoded] = /^([^+]*)\+?([^+]*)\+?(.*)$/s.exec(vkey);
  const data = unbase64(encoded);
  if (!isName(name) || data.length !== 33 || !kinds.includes(data[0])) {
    throw new Malformed("not a verification key of a kind that is known here");
  }
  const id = hex((await sha256(utf8(`${name}\n`), data)).slice(0, 4));
  if (short !== id) throw new Malformed("its hash does not fit the rest of it");
  return { name, id, kind: data[0], public: data.slice(1) };
}

function signatureOf(line) {
  const [, dash, name, encoded] = /^([^ ]*) ?([^ ]*) ?(.*)$/s.exec(line);
  const data = unbase64(encoded);
  if (dash !== "—" || !isName(name) || data.length < 5) throw new Malformed("a malformed signature line");
  return { name, id: hex(data.slice(0, 4)), data: data.slice(4) };
}

// What a log's signed note says; Malformed where it is none. Checks no signature.
export function parseCheckpoint(note) {
  if (/[\0-\x09\x0b-\x1f]/.test(note)) throw new Malformed("a control character in the note");
  const blank = note.lastIndexOf("\n\n");
  if (blank < 0 || !note.slice(blank + 2).endsWith("\n")) throw new Malformed("no signature lines after a blank one");
  const signatures = note.slice(blank + 2, -1).split("\n").map(signatureOf);
  if (signatures.length > SIGNATURES_MAX) throw new Malformed(`more than ${SIGNATURES_MAX} signatures`);
  const text = note.slice(0, blank + 1), [origin, size, root, ...rest] = text.split("\n");
  if (rest.length !== 1 || !isName(origin)) throw new Malformed("not origin, size and root, a line each");
  if (!/^(0|[1-9][0-9]{0,15})$/.test(size) || !Number.isSafeInteger(Number(size))) {
    throw new Malformed("its size is no decimal number");
  }
  const tree = hex(unbase64(root, 32));
  if (!signatures.some((each) => each.name === origin && each.data.length === 64)) {
    throw new Malformed("no signature in the name of its origin");
  }
  return { origin, size: Number(size), root: tree, text, signatures, note };
}

const ed25519 = (bytes) => crypto.subtle.importKey("raw", bytes, "Ed25519", false, ["verify"]);

// Whether this browser can check Ed25519 at all: it is asked for a key that is certainly good.
export const hasEd25519 = () => ed25519(new Uint8Array(32).fill(0x66).with(0, 0x58)).then(() => true, () => false);

async function isSigned(key, message, signature) {
  const y = number(key.public) & (2n ** 255n - 1n);
  if (y >= P || SMALL.includes(y) || signature.length !== 64) return false;
  try {
    return await crypto.subtle.verify("Ed25519", await ed25519(key.public), signature, message);
  } catch (error) {
    if (error.name === "DataError" || error.name === "OperationError") return false; // no point
    throw error;
  }
}

// Those of the keys that signed a note; Malformed where one of them did not, or none did.
export async function signersOf({ text, signatures }, keys) {
  const found = [];
  for (const each of signatures) {
    const known = keys.filter((key) => same(key, each));
    if (known.length > 1) throw new Malformed("two of the keys share one name and id");
    if (!known.length || found.includes(known[0])) continue;
    if (!await isSigned(known[0], utf8(text), each.data)) throw new Malformed(`the signature of ${each.name} is wrong`);
    found.push(known[0]);
  }
  if (!found.length) throw new Malformed("it bears no signature of a key that was given");
  return found;
}

// When (in seconds) a witness cosigned a checkpoint; null where it did not (cosignature/v1).
export async function cosignedS({ text, signatures }, witness) {
  for (const each of signatures.filter((one) => same(one, witness) && one.data.length === 72)) {
    const time = BigInt(`0x${hex(each.data.slice(0, 8))}`);
    const said = utf8(`cosignature/v1\ntime ${time}\n${text}`);
    if (await isSigned(witness, said, each.data.slice(8))) return time;
  }
  return null;
}

