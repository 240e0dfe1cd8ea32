/**
 * What a file contains, found from its bytes: text, an image, or neither.
 *
 * The bytes were written by users. Nothing of them is opened by the browser as a page: text is shown as text, also that of
 * HTML and SVG, and an image gets one of four types that browsers only draw.
 */
import { problemOf } from "@/api/problem";
import { MOST_PIXELS, pixelsOf } from "@/parts/preview/pixels";
import { symbols } from "@/texts/symbols";

/** More of a text is not read. */
export const TEXT_BYTES = 256 * 1024;
/** Larger images are not shown. */
export const IMAGE_BYTES = 16 * 1024 * 1024;

export type Content =
  | { readonly kind: "empty"; readonly size: number }
  | { readonly kind: "text"; readonly size: number; readonly text: string; readonly isCut: boolean }
  | { readonly kind: "image"; readonly size: number; readonly image: Blob }
  | { readonly kind: "tooLarge"; readonly size: number }
  | { readonly kind: "tooManyPixels"; readonly size: number; readonly pixels: number }
  | { readonly kind: "other"; readonly size: number };

/** Reads as much of a file as its preview needs. */
export async function read(url: string, signal: AbortSignal): Promise<Content> {
  const begin = await fetched(url, TEXT_BYTES, signal);
  if (begin.size === 0) return { kind: "empty", size: 0 };
  const type = imageType(begin.bytes);
  if (type === undefined) return textOf(begin);
  if (begin.size > IMAGE_BYTES) return { kind: "tooLarge", size: begin.size };
  const whole = begin.bytes.length < begin.size ? await fetched(url, IMAGE_BYTES, signal) : begin;
  return imageOf(type, whole);
}

export function imageOf(type: string, { bytes, size }: Begin): Content {
  const pixels = pixelsOf(type, bytes);
  if (pixels === undefined) return { kind: "other", size };
  if (pixels > MOST_PIXELS) return { kind: "tooManyPixels", size, pixels };
  return { kind: "image", size, image: new Blob([bytes], { type }) };
}

export interface Begin {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Bytes in the whole file. */
  readonly size: number;
}

const SIGNATURES: readonly (readonly [string, RegExp])[] = [
  ["image/png", /^\x89PNG\r\n\x1a\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

/** The type of an image, whatever the file is called. */
export function imageType(bytes: Uint8Array): string | undefined {
  const begin = String.fromCharCode(...bytes.subarray(0, 16));
  return SIGNATURES.find(([, signature]) => signature.test(begin))?.[0];
}

export function textOf({ bytes, size }: Begin): Content {
  const isCut = bytes.length < size;
  // Bytes that no text has.
  if (bytes.includes(0)) return { kind: "other", size };
  try {
    // A character at the cut may be incomplete.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
    return { kind: "text", size, text: symbols(text), isCut };
  } catch (error) {
    if (error instanceof TypeError) return { kind: "other", size };
    throw error;
  }
}

async function fetched(url: string, most: number, signal: AbortSignal): Promise<Begin> {
  const answer = await fetch(url, { headers: { Range: `bytes=0-${most - 1}` }, signal });
  const range = answer.headers.get("Content-Range");
  // An empty file has no range.
  if (answer.status === 416 && range === "bytes */0") return { bytes: new Uint8Array(), size: 0 };
  if (!answer.ok) throw problemOf(await answer.json().catch(() => undefined), answer.status);
  const bytes = await limited(answer, most);
  const size = Number(range?.split("/")[1] ?? answer.headers.get("Content-Length") ?? bytes.length);
  return { bytes, size: Math.max(size, bytes.length) };
}

/** Also where the server sends more than what was asked for. */
async function limited(answer: Response, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return new Uint8Array();
  const found = new Uint8Array(most);
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const piece = part.value.subarray(0, most - length);
    found.set(piece, length);
    length += piece.length;
    if (length === most) {
      await reader.cancel();
      break;
    }
  }
  return found.slice(0, length);
}
