// Reads a bundle's zip: these members and no others, nothing hidden beside them, no zip bomb.
import { decode, invalid, joined, LINE_BYTES_MAX, LISTS_BYTES_MAX, Stop, unreadable } from "./format.js";

const LOG_BYTES_MAX = 2 ** 36; // envelopes, which are streamed
const RATIO_MAX = 100; // envelopes shrink five times, a zip bomb a thousand
const PIECE_BYTES = 16_384; // what is unpacked at once: 16 MB at most
const [END_BYTES, HEAD_BYTES, ENTRY_BYTES, COMMENT_BYTES_MAX] = [22, 30, 46, 65_535];
const [STORED, DEFLATED] = [0, 8];
const MEMBERS = {
  "manifest.json": LINE_BYTES_MAX,
  "envelopes.ndjson": LOG_BYTES_MAX,
  "proofs.json": LISTS_BYTES_MAX,
  checkpoint: LINE_BYTES_MAX,
  "disclosures.ndjson": LISTS_BYTES_MAX,
};
const CRC = Uint32Array.from({ length: 256 }, (_, one) => {
  let crc = one;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
const CUT = "the directory at its end is missing or damaged: the file was cut off or changed. Download it again.";

const partOf = async (file, start, end) => new Uint8Array(await file.slice(start, end).arrayBuffer());
const viewOf = (bytes, at) => new DataView(bytes.buffer, bytes.byteOffset + at);

// Where the record at the end of a zip is, and the directory's place that it names.
async function endOf(file) {
  const from = Math.max(0, file.size - END_BYTES - COMMENT_BYTES_MAX);
  const tail = await partOf(file, from, file.size);
  let at = tail.length - END_BYTES;
  while (at >= 0 && viewOf(tail, at).getUint32(0) !== 0x504b0506) at -= 1;
  if (at < 0) throw unreadable(`File is not a zip file: ${CUT}`);
  const view = viewOf(tail, at), size = view.getUint32(12, true);
  return { start: from + at - size, size, shift: from + at - size - view.getUint32(16, true), last: from + at };
}

// The entries of the directory, by their place in the file.
async function listed(file, { start, size, shift }) {
  const data = await partOf(file, start, start + size), found = [];
  for (let at = 0; at < data.length;) {
    const view = viewOf(data, at);
    if (at + ENTRY_BYTES > data.length || view.getUint32(0) !== 0x504b0102) throw unreadable(CUT);
    const [name, extra, comment] = [28, 30, 32].map((each) => view.getUint16(each, true));
    const [crc, packed, bytes] = [16, 20, 24].map((each) => view.getUint32(each, true));
    found.push({
      name: String.fromCharCode(...data.slice(at + ENTRY_BYTES, at + ENTRY_BYTES + name)),
      flags: view.getUint16(8, true), method: view.getUint16(10, true), crc, packed, size: bytes,
      offset: view.getUint32(42, true) + shift, comment,
    });
    at += ENTRY_BYTES + name + extra + comment;
  }
  return found.sort((a, b) => a.offset - b.offset);
}

// Where a member's data begin; its own header has to say of it what the directory says.
async function startOf(file, { name, flags, method, offset }) {
  const head = await partOf(file, offset, offset + HEAD_BYTES);
  const wrong = unreadable(`${name} has a header that says something else`);
  if (head.length < HEAD_BYTES) throw wrong;
  const view = viewOf(head, 0), size = view.getUint16(26, true), extra = view.getUint16(28, true);
  const own = String.fromCharCode(...await partOf(file, offset + HEAD_BYTES, offset + HEAD_BYTES + size));
  const says = [view.getUint32(0), view.getUint16(6, true), view.getUint16(8, true), own];
  if (says.join() !== [0x504b0304, flags, method, name].join()) throw wrong;
  return offset + HEAD_BYTES + size + extra;
}

// The members of a bundle by name, each with `size` and `start`.
export async function membersOf(file) {
  const end = await endOf(file);
  if (end.shift < 0 || end.start < 0) throw unreadable(`Bad offset for central directory: ${CUT}`);
  const entries = await listed(file, end), names = entries.map(({ name }) => name);
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
    hides ||= !ends.includes(each.offset) || each.comment > 0;
    each.start = await startOf(file, each);
    const past = each.start + each.packed;
    ends = [past, ...(each.flags & 8 ? [12, 16, 20, 24].map((more) => past + more) : [])];
  }
  if (hides || !ends.includes(end.start)) throw invalid("the archive holds something beside its members");
  return new Map(entries.map((each) => [each.name, each]));
}

// A part of a file, a piece at a time.
export function piecesOf(file, start, end) {
  let at = start;
  return new ReadableStream({
    async pull(pieces) {
      if (at >= end) return pieces.close();
      pieces.enqueue(await partOf(file, at, Math.min(end, at + PIECE_BYTES)));
      at += PIECE_BYTES;
    },
  }, { highWaterMark: 0 });
}

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
      if (bytes > size) throw wrong;
      for (const one of chunk) found = CRC[(found ^ one) & 255] ^ (found >>> 8);
      yield chunk;
    }
  } catch (error) {
    throw error instanceof Stop || error.name === "NotReadableError" ? error : wrong;
  }
  if (bytes !== size || (found ^ 0xffffffff) >>> 0 !== crc) throw wrong;
}

export async function textOf(chunks) {
  const all = [];
  for await (const chunk of chunks) all.push(chunk);
  return decode(joined(all));
}
