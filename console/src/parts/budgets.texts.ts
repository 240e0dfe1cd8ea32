import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  title: ["Budgets", "预算"],
  ofUser: ["{name}", "{name}"],
  ofGroup: ["group {name}", "用户组 {name}"],
  gpuHours: ["GPU-hours", "GPU 小时"],
  money: ["money", "金额"],
  month: ["this month", "本月"],
  quarter: ["this quarter", "本季度"],
  total: ["in total", "总计"],
  spentOf: ["{spent} of {limit} {unit}", "已用 {spent} / {limit} {unit}"],
  spent: ["{spent} {unit}", "已用 {spent} {unit}"],
  over: ["over budget by {amount}", "超出预算 {amount}"],
  ends: ["lasts until {at} at the rate of the last week", "按最近一周的用量可用到 {at}"],
  lasts: ["lasts for the period", "本期内足够"],
});
