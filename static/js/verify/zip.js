// Reads a bundle's zip: these members and no others, nothing hidden beside them, no zip bomb.
import { decode, invalid, joined, LINE_BYTES_MAX, Stop, unreadable } from "./format.js";

const RATIO_MAX = 100; // envelopes shrink five times, a zip bomb a thousand
const PIECE_BYTES = 16_384; // what is unpacked at once: 16 MB at most
const [LOCATOR_BYTES, END_BYTES, HEAD_BYTES, ENTRY_BYTES, COMMENT_BYTES_MAX, VERSION_MAX] = [20, 22, 30, 46, 65_535, 63];
const [STORED, DEFLATED] = [0, 8];
const MEMBERS = {
  "manifest.json": LINE_BYTES_MAX,
  "envelopes.ndjson": 2 ** 36, // streamed
  "proofs.json": 2 ** 26, // held in memory
  checkpoint: LINE_BYTES_MAX,
  "disclosures.ndjson": 2 ** 26,
};
const CRC = Uint32Array.from({ length: 256 }, (_, one) => {
  let crc = one;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
const CUT = "the directory at its end is missing or damaged: the file was cut off or changed. Download it again.";

const partOf = async (file, start, end) => new Uint8Array(await file.slice(start, end).arrayBuffer());
const viewOf = (bytes, at) => new DataView(bytes.buffer, bytes.byteOffset + at);
const textOf = (flags, bytes) => (flags & 0x800 ? decode(bytes) : String.fromCharCode(...bytes));

// Where the record at the end of a zip is, and the directory's place that it names.
async function endOf(file) {
  const from = Math.max(0, file.size - END_BYTES - COMMENT_BYTES_MAX), tail = await partOf(file, from, file.size);
  let at = tail.length - END_BYTES;
  while (at >= 0 && viewOf(tail, at).getUint32(0) !== 0x504b0506) at -= 1;
  if (at < 0) throw unreadable(`File is not a zip file: ${CUT}`);
  // Its record elsewhere names another directory, which verify.py reads.
  const large = at >= LOCATOR_BYTES && viewOf(tail, at - LOCATOR_BYTES).getUint32(0) === 0x504b0607;
  if (large) throw unreadable("a zip64 archive: check it with verify.py on the command line");
  const view = viewOf(tail, at), size = view.getUint32(12, true), start = from + at - size;
  if (start < 0) throw unreadable(`Bad offset for central directory: ${CUT}`);
  return { start, size, shift: start - view.getUint32(16, true), last: from + at };
}

function checkExtra(extra) {
  for (let at = 0; at + 4 <= extra.length;) {
    at += 4 + viewOf(extra, at).getUint16(2, true);
    if (at > extra.length) throw unreadable(`Corrupt extra field: ${CUT}`);
  }
}

// The entries of the directory, by their place in the file.
async function listed(file, { start, size, shift }) {
  const data = await partOf(file, start, start + size), found = [];
  for (let at = 0; at < data.length;) {
    const view = viewOf(data, at);
    if (at + ENTRY_BYTES > data.length || view.getUint32(0) !== 0x504b0102) throw unreadable(CUT);
    if (view.getUint8(6) > VERSION_MAX) throw unreadable("a zip of a newer version of the format");
    const [flags, method] = [8, 10].map((each) => view.getUint16(each, true));
    const [crc, packed, bytes, offset] = [16, 20, 24, 42].map((each) => view.getUint32(each, true));
    const [name, extra, comment] = [28, 30, 32].map((each) => view.getUint16(each, true));
    const past = at + ENTRY_BYTES + name, end = past + extra;
    checkExtra(data.slice(past, end));
    found.push({
      name: textOf(flags, data.slice(at + ENTRY_BYTES, past)).split("\0")[0],
      flags, method, crc, packed, size: bytes, offset: offset + shift, comment: comment > 0 && end < data.length,
    });
    at = end + comment;
  }
  return found.sort((a, b) => a.offset - b.offset);
}

// Where a member's data begin; its own header has to say of it what the directory says.
async function startOf(file, { name, flags, method, offset }) {
  const wrong = unreadable(`${name} has a header that says something else`);
  const head = await partOf(file, offset, offset + HEAD_BYTES);
  if (offset < 0 || head.length < HEAD_BYTES) throw wrong;
  const view = viewOf(head, 0), [size, extra] = [26, 28].map((each) => view.getUint16(each, true));
  const own = String.fromCharCode(...await partOf(file, offset + HEAD_BYTES, offset + HEAD_BYTES + size));
  const says = [view.getUint32(0), view.getUint16(6, true), view.getUint16(8, true), own];
  if (says.join() !== [0x504b0304, flags, method, name].join()) throw wrong;
  return offset + HEAD_BYTES + size + extra;
}

// The members of a bundle by name, each with `size` and `start`.
export async function membersOf(file) {
  const end = await endOf(file), entries = await listed(file, end), names = entries.map(({ name }) => name);
  if (!names.includes("manifest.json")) throw unreadable("a zip without manifest.json is no bundle");
  if (new Set(names).size < names.length || !names.every((name) => Object.hasOwn(MEMBERS, name))) {
    throw invalid("members that a bundle does not have, or twice", null, Object.keys(MEMBERS), names.slice(0, 10));
  }
  if (!["envelopes.ndjson", "checkpoint"].every((name) => names.includes(name))) {
    throw invalid("envelopes.ndjson or checkpoint is missing");
  }
  let [hides, ends] = [end.last !== file.size - END_BYTES, [0]];
  for (const each of entries) {
    if (each.flags & 1 || ![STORED, DEFLATED].includes(each.method)) {
      throw unreadable(`${each.name} is encrypted, or packed in an unknown way`);
    }
    const most = Math.min(MEMBERS[each.name], Math.max(LINE_BYTES_MAX, RATIO_MAX * each.packed));
    if (each.size > most) throw unreadable(`${each.name} unpacks to more than a bundle holds`);
    hides ||= !ends.includes(each.offset) || each.comment;
    each.start = await startOf(file, each);
    const past = each.start + each.packed;
    ends = [past, ...(each.flags & 8 ? [12, 16, 20, 24].map((more) => past + more) : [])];
  }
  if (hides || !ends.includes(end.start)) throw invalid("the archive holds something beside its members");
  return new Map(entries.map((each) => [each.name, each]));
}

// A part of a file, a piece at a time.
export const piecesOf = (file, start, end) => new ReadableStream({
  async pull(pieces) {
    if (start >= end) return pieces.close();
    pieces.enqueue(await partOf(file, start, Math.min(end, start + PIECE_BYTES)));
    start += PIECE_BYTES;
  },
}, { highWaterMark: 0 });

export const collected = async (chunks) => joined(await Array.fromAsync(chunks));

export async function* chunksOf(stream) {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

// What a member holds, a chunk at a time: just what it declares, and nothing behind that.
export async function* unpacked(file, { name, start, packed, size, crc, method }) {
  const wrong = unreadable(`${name} does not unpack to what it declares, and to no more`);
  const pieces = piecesOf(file, start, start + packed);
  let [bytes, found] = [0, 0xffffffff];
  try {
    const stream = method === STORED ? pieces : pieces.pipeThrough(new DecompressionStream("deflate-raw"));
    for await (const chunk of chunksOf(stream)) {
      bytes += chunk.length;
      for (const one of chunk) found = CRC[(found ^ one) & 255] ^ (found >>> 8);
      yield chunk;
      if (bytes > size) break;
    }
  } catch (error) {
    throw error instanceof Stop || error.name === "NotReadableError" ? error : wrong;
  }
  if (bytes !== size || (found ^ 0xffffffff) >>> 0 !== crc) throw wrong;
}
