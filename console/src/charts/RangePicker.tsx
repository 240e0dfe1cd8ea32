import { SegmentedControl } from "@mantine/core";

import { RANGES, isRange, useRange } from "@/charts/ranges";
import { texts } from "@/charts/texts";
import { useTexts } from "@/texts/texts";

/** How far the charts of a page look back. */
export function RangePicker() {
  const t = useTexts(texts);
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
