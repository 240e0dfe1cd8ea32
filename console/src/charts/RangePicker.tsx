import { SegmentedControl } from "@mantine/core";

import { RANGES, isRange, useRange } from "@/charts/ranges";
import { words } from "@/charts/words";
import { useWords } from "@/words/words";

/** How far the charts of a page look back. */
export function RangePicker() {
  const t = useWords(words);
  const [range, setRange] = useRange();
  return (
    <SegmentedControl
      size="xs"
      aria-label={t("range")}
      value={range}
      onChange={(value) => isRange(value) && setRange(value)}
      data={RANGES.map((value) => ({ value, label: t(`range_${value}`) }))}
    />
  );
}
