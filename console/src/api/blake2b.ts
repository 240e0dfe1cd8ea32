/**
 * BLAKE2b with 32 bytes (RFC 7693), piece by piece: the checksum that the server wants of what is uploaded. Browsers have no
 * such function of their own. A 64-bit number is two 32-bit ones here, the lower half first.
 */

const ROUNDS = 12;
const BLOCK = 128;
const LENGTH = 32;

/** The fractional parts of the square roots of the first eight primes. */
const IV = Uint32Array.of(
  ...[0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a],
  ...[0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19],
);

/** In which order each round takes the words of a block. */
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
] as const;

/** Columns, then diagonals: which four words are mixed with each other. */
const MIXED = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

export class Blake2b {
  private readonly state = Uint32Array.from(IV);
  private readonly work = new Uint32Array(32);
  private readonly words = new Uint32Array(32);
  private readonly block = new Uint8Array(BLOCK);
  private filled = 0;
  private total = 0;

  constructor() {
    this.state[0] = (this.state[0] as number) ^ 0x01010000 ^ LENGTH;
  }

  update(bytes: Uint8Array): this {
    let at = 0;
    while (at < bytes.length) {
      // The last block is special: a full one waits until it is clear that more comes.
      if (this.filled === BLOCK) this.compress(false);
      const count = Math.min(BLOCK - this.filled, bytes.length - at);
      this.block.set(bytes.subarray(at, at + count), this.filled);
      this.filled += count;
      this.total += count;
      at += count;
    }
    return this;
  }

  /** In hexadecimal digits. Nothing can be added afterwards. */
  digest(): string {
    this.block.fill(0, this.filled);
    this.compress(true);
    const bytes = new Uint8Array(this.state.buffer, 0, LENGTH);
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  private compress(isLast: boolean): void {
    const { work, words, state } = this;
    const view = new DataView(this.block.buffer);
    for (let index = 0; index < 32; index += 1) words[index] = view.getUint32(index * 4, true);
    work.set(state, 0);
    work.set(IV, 16);
    work[24] = (work[24] as number) ^ (this.total >>> 0);
    work[25] = (work[25] as number) ^ Math.floor(this.total / 2 ** 32);
    if (isLast) {
      work[28] = ~(work[28] as number);
      work[29] = ~(work[29] as number);
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const order = SIGMA[round % SIGMA.length] as (typeof SIGMA)[0];
      for (let turn = 0; turn < 8; turn += 1) {
        const [a, b, c, d] = MIXED[turn] as (typeof MIXED)[0];
        this.mix(a * 2, b * 2, c * 2, d * 2, (order[turn * 2] as number) * 2, (order[turn * 2 + 1] as number) * 2);
      }
    }
    for (let index = 0; index < 16; index += 1)
      state[index] = (state[index] as number) ^ (work[index] as number) ^ (work[index + 16] as number);
    this.filled = 0;
  }

  private mix(a: number, b: number, c: number, d: number, x: number, y: number): void {
    const { work, words } = this;
    add(work, a, work, b);
    add(work, a, words, x);
    turnRight(work, d, a, 32);
    add(work, c, work, d);
    turnRight(work, b, c, 24);
    add(work, a, work, b);
    add(work, a, words, y);
    turnRight(work, d, a, 16);
    add(work, c, work, d);
    turnRight(work, b, c, 63);
  }
}

/** To the 64-bit number at `to` is added the one at `from`. */
function add(numbers: Uint32Array, to: number, others: Uint32Array, from: number): void {
  const low = (numbers[to] as number) + (others[from] as number);
  const carry = low > 0xffffffff ? 1 : 0;
  numbers[to] = low;
  numbers[to + 1] = (numbers[to + 1] as number) + (others[from + 1] as number) + carry;
}

/** The 64-bit number at `to` is combined with the one at `other`, and turned right by so many bits. */
function turnRight(numbers: Uint32Array, to: number, other: number, bits: number): void {
  const low = (numbers[to] as number) ^ (numbers[other] as number);
  const high = (numbers[to + 1] as number) ^ (numbers[other + 1] as number);
  if (bits === 32) {
    numbers[to] = high;
    numbers[to + 1] = low;
  } else if (bits < 32) {
    numbers[to] = (low >>> bits) | (high << (32 - bits));
    numbers[to + 1] = (high >>> bits) | (low << (32 - bits));
  } else {
    // By 63 to the right is by one to the left.
    numbers[to] = (low << 1) | (high >>> 31);
    numbers[to + 1] = (high << 1) | (low >>> 31);
  }
}
