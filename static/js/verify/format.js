// Outcomes, canonical JSON, base64 and hashes, as nanovm_core/verify.py has them.
import { faultOf } from "../syntax.js";

export const LINE_BYTES_MAX = 1_048_576; // one envelope. Also manifest, note, receipt
export const LISTS_BYTES_MAX = 67_108_864; // proofs and disclosures, which are held in memory
export const ZEROS = "0".repeat(64);
const DEPTH_MAX = 64; // nested arrays and objects
export const PROOFS_AT_ONCE = 50; // so that no task is long
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
export const utf8 = (text) => new TextEncoder().encode(text);

// The end of a verification: exit code and word of verify.py, and what to say.
export class Stop extends Error {
  constructor(code, word, ...lines) {
    super(word);
    Object.assign(this, { code, word, lines });
  }
}

// Bytes that are not what they have to be; where it is known which, a Stop is made of it.
export class Malformed extends Error {}

export const unreadable = (text) => new Stop(2, "UNREADABLE", text);

export function invalid(text, seq = null, expected = "", found = "") {
  const compared = expected !== "" || found !== "";
  const lines = compared ? [`expected: ${shown(expected)}`, `found: ${shown(found)}`] : [];
  return new Stop(1, "INVALID", seq === null ? text : `seq ${seq}: ${text}`, ...lines);
}

// Foreign text on one line, without anything that steers its reader's screen.
export function shown(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const hidden = (one) => `\\x${one.codePointAt(0).toString(16).padStart(2, "0")}`;
  return [...text].slice(0, 200).join("").replace(/(?! )[\p{C}\p{Z}]/gu, hidden);
}

// The outcome of `made`; a Malformed becomes what `stop` makes of its words.
export async function orStop(made, stop) {
  try {
    return await made();
  } catch (error) {
    throw error instanceof Malformed ? stop(error.message) : error;
  }
}

export function unbase64(text, size = null) {
  let data = null;
  try {
    data = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  } catch {
    throw new Malformed("not base64");
  }
  if (btoa(String.fromCharCode(...data)) !== text) throw new Malformed("base64 that does not re-encode to itself");
  if (size !== null && data.length !== size) throw new Malformed(`${data.length} bytes instead of ${size}`);
  return data;
}

export function decode(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Malformed("not UTF-8");
  }
}

export function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Malformed(error.message);
  }
}

// The value of JSON of any form without floats and keys that stand twice.
export function strict(text) {
  const fault = faultOf(text);
  if (fault || /^[\s]|[\s]$/.test(text)) throw new Malformed(fault ? fault.why : "white space around the value");
  if (/\d[.eE]/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, ""))) throw new Malformed("a number is no integer");
  const value = parse(text);
  encode(value);
  return value;
}

// The value of canonical text (RFC 8785 on the profile); Malformed for any other.
export function canonical(text) {
  const value = parse(text);
  if (encode(value) !== text) throw new Malformed("the bytes do not re-encode to themselves");
  return value;
}

function encode(value, depth = 0) {
  if (typeof value === "string") {
    if (!value.isWellFormed()) throw new Malformed("half a surrogate pair");
    return JSON.stringify(value);
  }
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new Malformed("no integer, or one beyond 2^53-1");
    return String(value);
  }
  if (value === null || typeof value === "boolean") return String(value);
  if (depth === DEPTH_MAX) throw new Malformed(`nested deeper than ${DEPTH_MAX} levels`);
  if (Array.isArray(value)) return `[${value.map((each) => encode(each, depth + 1)).join(",")}]`;
  const parts = Object.keys(value).sort().map((key) => {
    if (/[^\0-\x7f]/.test(key)) throw new Malformed("a key that is not ASCII");
    return `${JSON.stringify(key)}:${encode(value[key], depth + 1)}`;
  });
  return `{${parts.join(",")}}`;
}

// Lets the page live: what is awaited of a cipher or a stream may come without a new task.
const channel = new MessageChannel();
channel.port1.start();
export const breath = () => new Promise((go) => {
  channel.port1.addEventListener("message", go, { once: true });
  channel.port2.postMessage(0);
});

// The members of a canonical object of lists, which may be large: read in parts, as a Map.
export async function canonicalLists(text) {
  const parts = text.slice(1, -1).split("],"), found = new Map();
  if (text[0] !== "{" || text.at(-1) !== "}") throw new Malformed("no object");
  let last = "";
  for (let at = 0; at < parts.length; at += PROOFS_AT_ONCE) {
    const some = parts.slice(at, at + PROOFS_AT_ONCE).join("],");
    const held = canonical(`{${some}${at + PROOFS_AT_ONCE < parts.length ? "]" : ""}}`);
    for (const [key, value] of Object.entries(held)) found.set(key, value);
    const keys = Object.keys(held).sort();
    if (at && !(keys[0] > last)) throw new Malformed("keys out of order");
    last = keys.at(-1);
    await breath();
  }
  return found;
}

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(parts)));
}

export function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const each of parts) {
    all.set(each, at);
    at += each.length;
  }
  return all;
}

const BYTE = Array.from({ length: 256 }, (_, one) => one.toString(16).padStart(2, "0"));
export const hex = (bytes) => Array.from(bytes, (one) => BYTE[one]).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
