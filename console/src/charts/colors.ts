/** Colours of series, distinguishable in both themes and by most kinds of colour blindness (with the label beside them always). */
export const SERIES_COLORS = [
  "#4c8dff",
  "#20b8a6",
  "#f2a33c",
  "#e2557b",
  "#9b7bff",
  "#56b949",
  "#38b6e8",
  "#d9603b",
  "#c05fd0",
  "#93a1b8",
] as const;

export function seriesColor(index: number): string {
  return SERIES_COLORS[index % SERIES_COLORS.length] ?? SERIES_COLORS[0];
}
