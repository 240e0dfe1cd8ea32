// Writes the files of a folder once more as gzip and Brotli, where that is smaller: the server has nothing to compress.
// Node.js brings both, so no package is needed. Usage: node compress.mjs FOLDER
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { argv } from "node:process";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const TEXT = new Set([".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"]);
// Below this the headers of an answer weigh more than what is saved.
const SMALLEST_BYTES = 1024;

const forms = {
  ".gz": (content) => gzipSync(content, { level: 9 }),
  ".br": (content) =>
    brotliCompressSync(content, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      },
    }),
};

for (const entry of readdirSync(argv[2], { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !TEXT.has(extname(entry.name))) continue;
  const path = join(entry.parentPath ?? entry.path, entry.name);
  // The bundler's notes to itself are not served.
  if (path.includes("/.vite/")) continue;
  const content = readFileSync(path);
  if (content.length < SMALLEST_BYTES) continue;
  for (const [suffix, compress] of Object.entries(forms)) {
    const compressed = compress(content);
    if (compressed.length < content.length) writeFileSync(path + suffix, compressed);
  }
}
