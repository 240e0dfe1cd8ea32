/** A small line without axes, beside the figure itself; it shrinks where the figure is long. */
export function Sparkline({
  values,
  color = "var(--mantine-color-blue-5)",
  width = 64,
  height = 26,
}: {
  values: readonly number[];
  color?: string;
  width?: number;
  height?: number;
}) {
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const points = values.map(
    (value, index) =>
      `${((index / (values.length - 1)) * width).toFixed(1)},${(height - 2 - ((value - low) / span) * (height - 4)).toFixed(1)}`,
  );
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      style={{ flexShrink: 1, minWidth: 0 }}
    >
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
