// What a verification was given, and what it has checked so far.
import { invalid, orStop, shown, unreadable } from "./format.js";
import { parseCheckpoint, signersOf } from "./proofs.js";
import { chunksOf, piecesOf } from "./zip.js";

export const WHOLE = ""; // the name of a file that has no members
const NOT_HERE = {
  form: "", bytes: "The file holds no events.", chain: "The file holds no events.", tree: "Nothing ties it to a signed tree.",
  checkpoint: "No checkpoint came with it.", values: "Nothing is disclosed.", receipt: "No receipt was brought.",
  witness: "No witness's key was brought.",
};

// What is brought, and what was checked so far: the count, and why a stage was left out, of each.
export class Work {
  constructor(file, { keys = [], receipt = null, flip = null, progress = () => {}, signal = null }) {
    Object.assign(this, { file, brought: [...new Set(keys)], receipt, flip, progress, signal, now: "form", leaf: null });
    this.checks = { form: 0, checkpoint: 0, bytes: 0, values: 0, chain: 0, tree: 0, witness: 0, receipt: 0 };
    this.skipped = { ...NOT_HERE };
    this.finished = [];
  }

  count(stage, checks = 1) {
    this.now = stage;
    this.checks[stage] += checks;
  }

  // The chunks of a member, with the byte that is to be broken in them.
  async* touched(name, chunks, from = 0) {
    let at = from;
    for await (const chunk of chunks) {
      const place = this.flip?.name === name ? this.flip.at - at : -1;
      if (place >= 0 && place < chunk.length) {
        this.flip.was = chunk[place];
        chunk[place] ^= 1 << this.flip.bit;
      }
      at += chunk.length;
      yield chunk;
    }
  }

  raw(start, end) {
    return this.touched(WHOLE, chunksOf(piecesOf(this.file, start, end)), start);
  }

  // The checkpoint of a note, if the keys let it count.
  async admit(note) {
    this.now = "checkpoint";
    const wrong = (why) => invalid(`checkpoint: ${why}`);
    const signed = await orStop(() => parseCheckpoint(note), wrong);
    this.skipped.checkpoint = "No key was brought: its signature was not checked.";
    if (!this.canSign) this.skipped.checkpoint = this.skipped.witness = "This browser has no Ed25519 in WebCrypto.";
    else if (this.keys.length) {
      const signers = await orStop(() => signersOf(signed, this.keys), wrong);
      const other = signers.find((key) => key.name !== signed.origin);
      if (other) throw invalid("the key is another log's", null, signed.origin, signers[0].name);
      this.count("checkpoint", signers.length);
    }
    this.checkpoint = signed;
    if (this.known && this.known.origin !== signed.origin) {
      this.now = "receipt";
      throw unreadable(`your receipt is about another log, ${shown(this.known.origin)}; this is ${shown(signed.origin)}`);
    }
    return signed;
  }
}
