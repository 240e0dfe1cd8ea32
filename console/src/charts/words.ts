import { defineWords } from "@/words/words";

export const words = defineWords({
  noReadings: ["No readings in this time", "此时段没有数据"],
  noReadingsHint: ["They appear here as soon as something is measured.", "一旦有测量数据便会显示在这里。"],
  mean: ["mean", "均值"],
  max: ["max", "最大"],
  time: ["time", "时间"],
});
