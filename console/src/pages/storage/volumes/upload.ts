/** One file into a volume: in parts, each with its checksum, and visible only when it is whole. What broke off goes on. */
import { api, sent, type Schema } from "@/api/client";
import { Checksum } from "@/api/checksum";
import { complete } from "@/api/complete";

const PART_BYTES = 8 * 1024 * 1024;
/** The size limit of uploads in a browser: larger files take too long. */
export const MOST_BYTES = 256 * 1024 * 1024;

export async function upload(
  volume: string,
  path: string,
  file: File,
  onProgress: (sentBytes: number) => void,
): Promise<void> {
  const modified_at = new Date(file.lastModified).toISOString();
  const order = complete<Schema<"UploadCreate">>({ path, size: file.size, part_bytes: PART_BYTES, modified_at });
  const begun = await begin(volume, order);
  const have = new Set(begun.have);
  const whole = new Checksum();
  for (let part = 0; part < begun.parts; part += 1) {
    const piece = file.slice(part * begun.part_bytes, (part + 1) * begun.part_bytes);
    const bytes = new Uint8Array(await piece.arrayBuffer());
    whole.update(bytes);
    if (!have.has(part)) await sendPart(volume, begun.id, part, bytes);
    onProgress(Math.min(file.size, (part + 1) * begun.part_bytes));
  }
  await sent(
    api.POST("/volumes/{volume}/uploads/{upload}/complete", {
      params: { path: { volume, upload: begun.id } },
      body: { checksum: whole.digest() },
    }),
  );
}

function begin(volume: string, body: Schema<"UploadCreate">) {
  return sent(api.POST("/volumes/{volume}/uploads", { params: { path: { volume } }, body }));
}

function sendPart(volume: string, upload: string, part: number, bytes: Uint8Array<ArrayBuffer>) {
  return sent(
    api.PUT("/volumes/{volume}/uploads/{upload}/parts/{part}", {
      params: {
        path: { volume, upload, part },
        header: { "X-Checksum": new Checksum().update(bytes).digest() },
      },
      headers: { "Content-Type": "application/octet-stream" },
      // The description calls the body a text; it is bytes.
      body: bytes as unknown as string,
      bodySerializer: () => new Blob([bytes]),
    }),
  );
}
