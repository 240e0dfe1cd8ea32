import { sparkPoints, topOf } from "@/charts/spark";
import { texts } from "@/charts/texts";
import { useTexts } from "@/texts/texts";

/** A small line without axes, beside the figure itself; it shrinks where the figure is long. Its label says the scale. */
export function Sparkline({
  label,
  values,
  usualTop = 0,
  format,
  color = "var(--mantine-color-blue-5)",
  width = 64,
  height = 26,
}: {
  label: string;
  values: readonly number[];
  /** Where the scale ends, such as 1 for parts; values beyond it extend it. Without it the greatest value is the end. */
  usualTop?: number;
  format: (value: number) => string;
  color?: string;
  width?: number;
  height?: number;
}) {
  const t = useTexts(texts);
  if (values.length < 2) return null;
  const top = topOf(values, usualTop);
  const points = sparkPoints(values, top, width, height);
  const said = t("scale", { name: label, low: format(0), high: format(top) });
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={said}
      style={{ flexShrink: 1, minWidth: 0 }}
    >
      <title>{said}</title>
      <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} fill={color} opacity={0.14} />
      <polyline
        points={points.join(" ")}
        fill="none"
        stroke={color}
        strokeWidth={1.5}
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
