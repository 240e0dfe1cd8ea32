import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  noReadings: ["No readings in this time", "此时段没有数据"],
  noReadingsHint: ["They appear here as soon as something is measured.", "一旦有测量数据便会显示在这里。"],
  mean: ["mean", "均值"],
  max: ["max", "最大"],
  scale: ["{name}, on a scale from {low} to {high}", "{name}，刻度从 {low} 到 {high}"],
  time: ["time", "时间"],
  range: ["Time range", "时间范围"],
  custom: ["Certain times", "自定义时间"],
  from: ["From", "从"],
  to: ["To", "到"],
  show: ["Show", "显示"],
  back: ["Back to the time before", "返回之前的时间范围"],
  wrongRange: ["Must be after the start", "必须晚于开始时间"],
  alertMark: ["Alert: {text}", "告警：{text}"],
  startMark: ["{job} started", "{job} 已启动"],
  range_1h: ["1 h", "1 小时"],
  range_6h: ["6 h", "6 小时"],
  range_24h: ["24 h", "24 小时"],
  range_7d: ["7 d", "7 天"],
  range_30d: ["30 d", "30 天"],
});
