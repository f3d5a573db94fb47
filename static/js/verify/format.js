// Outcomes, canonical JSON, base64 and hashes, as nanovm_core/verify.py has them.
import { faultOf } from "../syntax.js";

export const LINE_BYTES_MAX = 1_048_576; // one envelope. Also manifest, note, receipt
export const ZEROS = "0".repeat(64);
const DEPTH_MAX = 64; // nested arrays and objects
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

function orMalformed(made, why) {
  try {
    return made();
  } catch (error) {
    throw new Malformed(why ?? error.message);
  }
}

export const decode = (bytes) => orMalformed(() => decoder.decode(bytes), "not UTF-8");
export const parse = (text) => orMalformed(() => JSON.parse(text));

export function unbase64(text, size = null) {
  const data = orMalformed(() => atob(text), "not base64");
  if (btoa(data) !== text) throw new Malformed("base64 that does not re-encode to itself");
  if (size !== null && data.length !== size) throw new Malformed(`${data.length} bytes instead of ${size}`);
  return Uint8Array.from(data, (one) => one.charCodeAt(0));
}

// The value of JSON of any form without floats and keys that stand twice.
export function strict(text) {
  const fault = faultOf(text);
  if (fault || /^\s|\s$/.test(text)) throw new Malformed(fault ? fault.why : "white space around the value");
  if (/\d[.eE]/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, ""))) throw new Malformed("a number is no integer");
  const value = parse(text);
  encode(value, false);
  return value;
}

// The value of canonical text (RFC 8785 on the profile); Malformed for any other.
export function canonical(text) {
  const value = parse(text);
  if (encode(value) !== text) throw new Malformed("the bytes do not re-encode to themselves");
  return value;
}

function encode(value, exact = true, depth = 0) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new Malformed("no integer, or one beyond 2^53-1");
    return String(value);
  }
  if (typeof value === "string") {
    if (exact && !value.isWellFormed()) throw new Malformed("half a surrogate pair");
    return JSON.stringify(value);
  }
  if (depth === DEPTH_MAX) throw new Malformed(`nested deeper than ${DEPTH_MAX} levels`);
  const inner = (each) => encode(each, exact, depth + 1);
  if (Array.isArray(value)) return `[${value.map(inner).join(",")}]`;
  const keys = Object.keys(value).sort();
  if (exact && /[^\0-\x7f]/.test(keys.join(""))) throw new Malformed("a key that is not ASCII");
  return `{${keys.map((key) => `${JSON.stringify(key)}:${inner(value[key])}`).join(",")}}`;
}

export const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(parts)));

export function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const each of parts) {
    all.set(each, at);
    at += each.length;
  }
  return all;
}

export const hex = (bytes) => Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
