/** The GPUs of a node as small cells: held, taken by others, free, suspect, failed; by shape too, and in words. */
import type { Schema } from "@/api/client";
import { texts } from "@/pages/fleet/nodes/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Gpu = Schema<"GpuView">;

const [WIDTH, HEIGHT, GAP, PER_ROW] = [11, 12, 2, 16];

export function GpuCells({ gpus, free }: { gpus: readonly Gpu[]; free: number }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (gpus.length === 0) return <>–</>;
  const taken = gpus.filter((gpu) => gpu.taken).length;
  const label = [
    t("free", { free: format.number(free), n: gpus.length }),
    ...(taken > 0 ? [t("taken", { n: taken })] : []),
  ].join(", ");
  const columns = Math.min(PER_ROW, gpus.length);
  const rows = Math.ceil(gpus.length / PER_ROW);
  return (
    <svg
      role="img"
      aria-label={label}
      width={columns * (WIDTH + GAP)}
      height={rows * (HEIGHT + GAP) - GAP}
      style={{ display: "block" }}
    >
      <title>{label}</title>
      {gpus.map((gpu, at) => (
        <g
          key={gpu.id}
          transform={`translate(${(at % PER_ROW) * (WIDTH + GAP)} ${Math.floor(at / PER_ROW) * (HEIGHT + GAP)})`}
        >
          <Cell gpu={gpu} />
        </g>
      ))}
    </svg>
  );
}

function Cell({ gpu }: { gpu: Gpu }) {
  if (gpu.health === "failed") {
    return (
      <>
        <rect width={WIDTH} height={HEIGHT} rx={2} fill="var(--corral-bad)" />
        <path d="M3 3.5 L8 8.5 M8 3.5 L3 8.5" stroke="#fff" strokeWidth={1.5} />
      </>
    );
  }
  const held = Math.min(1, gpu.allocated);
  const edge = gpu.health === "suspect" ? "var(--mantine-color-orange-6)" : "var(--mantine-color-blue-5)";
  return (
    <>
      {gpu.taken && held === 0 && (
        <rect x={2.5} y={2.5} width={WIDTH - 5} height={HEIGHT - 5} fill="var(--mantine-color-gray-5)" />
      )}
      {held > 0 && (
        <rect
          x={1}
          y={1 + (1 - held) * (HEIGHT - 2)}
          width={WIDTH - 2}
          height={held * (HEIGHT - 2)}
          rx={1}
          fill="var(--mantine-color-blue-5)"
        />
      )}
      <rect
        x={0.75}
        y={0.75}
        width={WIDTH - 1.5}
        height={HEIGHT - 1.5}
        rx={2}
        fill="none"
        stroke={held > 0 || gpu.health === "suspect" ? edge : "var(--corral-faint)"}
        strokeWidth={1.25}
      />
      {gpu.health === "suspect" && <path d="M1 8 L7 1 M3 11 L10 4" stroke={edge} strokeWidth={1.5} />}
    </>
  );
}
