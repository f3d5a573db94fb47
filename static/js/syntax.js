// Where the syntax of JSON is broken (RFC 8259), and where an object names a key twice.
// It judges nothing else: whether a proposal is allowed is for the gate to say.

const BLANKS = " \t\n\r";
const ESCAPED = '"\\/bfnrt';
const HEX = /^[0-9a-fA-F]{4}$/;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORDS = ["true", "false", "null"];
const KEY_SHOWN_MAX = 40;

class Fault extends Error {
  constructor(at, why, kind = "syntax") {
    super(why);
    Object.assign(this, { at, why, kind });
  }
}

// Line and column of a position, from 1; a column counts characters, not their halves.
export function placeOf(text, at) {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const line = at === 0 ? 1 : text.slice(0, start).split("\n").length;
  return { line, column: [...text.slice(at === 0 ? 0 : start, at)].length + 1 };
}

// The index behind the string that begins at `at`.
function pastString(text, at) {
  for (let now = at + 1; now < text.length; now += 1) {
    const letter = text[now];
    if (letter === '"') return now + 1;
    if (letter < " ") throw new Fault(now, "a control character in a string");
    if (letter !== "\\") continue;
    const is = text[now + 1];
    const long = is === "u" && HEX.test(text.slice(now + 2, now + 6));
    if (!long && (is === undefined || !ESCAPED.includes(is))) {
      throw new Fault(now, "a backslash with none of the escapes behind it");
    }
    now += long ? 5 : 1;
  }
  throw new Fault(at, "this string has no end");
}

// The index behind the number or the word that begins at `at`.
function pastScalar(text, at) {
  if (at >= text.length) throw new Fault(at, "the text ends where a value is missing");
  if (text[at] === '"') return pastString(text, at);
  const word = WORDS.find((each) => text.startsWith(each, at));
  if (word) return at + word.length;
  NUMBER.lastIndex = at;
  const found = NUMBER.exec(text);
  if (found) return at + found[0].length;
  throw new Fault(at, "a value is missing, or this is none");
}

function named(text, from, to) {
  const key = text.slice(from, to);
  return key.length > KEY_SHOWN_MAX ? `${key.slice(0, KEY_SHOWN_MAX)}…` : key;
}

// The first fault of a text; null where there is none. No nesting is too deep for it.
export function faultOf(text) {
  const open = []; // the keys of each object that is open, and null for each array
  let twice = null; // a broken syntax is told before a key that stands twice
  let at = 0;
  let next = "value";

  function close() {
    open.pop();
    at += 1;
    next = "after";
  }

  function key() {
    if (text[at] !== '"') throw new Fault(at, "a key in double quotes is missing");
    const end = pastString(text, at);
    const name = JSON.parse(text.slice(at, end));
    const keys = open[open.length - 1];
    if (keys.has(name) && !twice) {
      const { line, column } = placeOf(text, keys.get(name));
      const first = `first used at line ${line}, column ${column}`;
      twice = new Fault(at, `the key ${named(text, at, end)} a second time: ${first}`, "twice");
    }
    if (!keys.has(name)) keys.set(name, at);
    at = end;
    next = "colon";
  }

  function value() {
    if (text[at] !== "{" && text[at] !== "[") {
      at = pastScalar(text, at);
      next = "after";
      return;
    }
    open.push(text[at] === "{" ? new Map() : null);
    next = text[at] === "{" ? "first key" : "first value";
    at += 1;
  }

  function after() {
    const keys = open[open.length - 1];
    const end = keys ? "}" : "]";
    if (text[at] === end) return close();
    if (text[at] !== ",") throw new Fault(at, `a comma or a ${end} is missing`);
    at += 1;
    next = keys ? "key" : "value";
  }

  try {
    for (;;) {
      while (at < text.length && BLANKS.includes(text[at])) at += 1;
      if (next === "after" && !open.length) break;
      if (next === "first key" && text[at] === "}") close();
      else if (next === "first value" && text[at] === "]") close();
      else if (next === "first key" || next === "key") key();
      else if (next === "first value" || next === "value") value();
      else if (next === "after") after();
      else if (text[at] === ":") [at, next] = [at + 1, "value"];
      else throw new Fault(at, "a colon is missing behind the key");
    }
    if (at < text.length) throw new Fault(at, "the value has ended, and there is more");
  } catch (fault) {
    if (fault instanceof Fault) return fault;
    throw fault;
  }
  return twice;
}

// The bytes that a box stands for, as the server reads it.
export function bytesOf(typed, mode) {
  if (mode === "hex") return fromHex(typed);
  if (mode === "percent") return fromPercent(typed);
  return new TextEncoder().encode(typed);
}

function fromHex(typed) {
  const wrong = typed.search(/[^0-9a-fA-F\s]/);
  const digits = typed.replace(/\s+/g, "");
  if (wrong >= 0) throw new Fault(wrong, "this is no hex digit", "mode");
  if (digits.length % 2) throw new Fault(typed.length, "a byte has two digits, and one is missing", "mode");
  return Uint8Array.from(digits.match(/../g) || [], (pair) => parseInt(pair, 16));
}

function fromPercent(typed) {
  const wrong = typed.search(/%(?![0-9a-fA-F]{2})/);
  if (wrong >= 0) throw new Fault(wrong, "a % without two hex digits; write %25 for the sign", "mode");
  const parts = typed.split(/(%[0-9a-fA-F]{2})/).map((part, place) =>
    place % 2 ? [parseInt(part.slice(1), 16)] : [...new TextEncoder().encode(part)]);
  return Uint8Array.from(parts.flat());
}

// What can be said of a box without the server: its first fault with its place, or null.
export function checked(typed, mode) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytesOf(typed, mode));
    const fault = faultOf(text);
    return fault && { ...placeOf(text, fault.at), why: fault.why, kind: fault.kind };
  } catch (fault) {
    if (fault instanceof Fault) return { ...placeOf(typed, fault.at), why: fault.why, kind: fault.kind };
    if (fault instanceof TypeError) return { why: "these bytes are not UTF-8", kind: "mode" };
    throw fault;
  }
}
