/**
 * The number of pixels of an image, from its header. The browser needs four bytes to draw each of them, however small
 * the file is: a few kilobytes may hold four billion.
 */

/** Images with more are not drawn. */
export const MOST_PIXELS = 100_000_000;

/** Undefined: the header cannot be read. */
export function pixelsOf(type: string, bytes: Uint8Array): number | undefined {
  const header = HEADERS[type];
  try {
    return header?.(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const HEADERS: Readonly<Record<string, (data: DataView) => number | undefined>> = {
  "image/png": (data) => data.getUint32(16) * data.getUint32(20),
  "image/jpeg": jpegPixels,
  "image/gif": gifPixels,
  "image/webp": webpPixels,
};

/** The first frame header (SOF) behind any number of other segments. */
function jpegPixels(data: DataView): number | undefined {
  for (let at = 2; data.getUint8(at) === 0xff;) {
    while (data.getUint8(at) === 0xff) at += 1;
    const marker = data.getUint8(at);
    // C4, C8 and CC lie between the frame headers, and are none.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      // A height of 0 is given behind the pixels.
      return (data.getUint16(at + 4) || 0xffff) * data.getUint16(at + 6);
    at += 1;
    // Segments without content.
    if (marker !== 0x01 && (marker < 0xd0 || marker > 0xd7)) at += data.getUint16(at);
  }
  return undefined;
}

/** The screen, or the first frame: a browser enlarges the screen to it. */
function gifPixels(data: DataView): number | undefined {
  const screen = data.getUint16(6, true) * data.getUint16(8, true);
  const flags = data.getUint8(10);
  let at = 13 + (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  while (data.getUint8(at) === 0x21) {
    at += 2;
    while (data.getUint8(at) !== 0) at += data.getUint8(at) + 1;
    at += 1;
  }
  if (data.getUint8(at) !== 0x2c) return undefined;
  const [left, top, width, height] = [1, 3, 5, 7].map((place) => data.getUint16(at + place, true));
  return Math.max(screen, ((left ?? 0) + (width ?? 0)) * ((top ?? 0) + (height ?? 0)));
}

function webpPixels(data: DataView): number | undefined {
  const uint24 = (at: number) => data.getUint16(at, true) + data.getUint8(at + 2) * 0x10000;
  switch (data.getUint32(12)) {
    case 0x56503858: // VP8X
      return (uint24(24) + 1) * (uint24(27) + 1);
    case 0x5650384c: {
      // VP8L
      const sizes = data.getUint32(21, true);
      return ((sizes & 0x3fff) + 1) * (((sizes >>> 14) & 0x3fff) + 1);
    }
    case 0x56503820: // VP8
      return (data.getUint16(26, true) & 0x3fff) * (data.getUint16(28, true) & 0x3fff);
    default:
      return undefined;
  }
}
