/** Where the line of a sparkline goes, as `x,y`. The scale begins at 0 and ends at `top`, whatever the values are. */
export function sparkPoints(values: readonly number[], top: number, width: number, height: number): readonly string[] {
  const x = (index: number) => (index / (values.length - 1)) * width;
  const y = (value: number) => height - 2 - (top > 0 ? Math.max(0, value) / top : 0) * (height - 4);
  return values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
}

/** The top of the scale: what is usual, or more where a value is beyond it. */
export function topOf(values: readonly number[], usual: number): number {
  return Math.max(usual, ...values);
}
