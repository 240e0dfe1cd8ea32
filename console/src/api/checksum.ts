/** The checksum that the server requires of uploads: BLAKE2b with 32 bytes, as hexadecimal digits. Browsers have none built in. */
import { blake2b } from "@noble/hashes/blake2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

/** Computes the checksum of bytes that arrive in pieces. */
export class Checksum {
  private readonly hash = blake2b.create({ dkLen: 32 });

  update(bytes: Uint8Array): this {
    this.hash.update(bytes);
    return this;
  }

  /** Finishes the digest; no bytes can be added afterwards. */
  digest(): string {
    return bytesToHex(this.hash.digest());
  }
}
