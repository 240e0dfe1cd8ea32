import { defineTexts } from "@/texts/texts";

export const quotaTexts = defineTexts({
  byKind: ["By kind of job", "按作业类型"],
  byVolume: ["By type of volume", "按存储卷类型"],
  volumeType: ["Volume", "存储卷"],
  size: ["Size", "容量"],
  memory: ["Memory", "内存"],
  none: ["No quota is set for you", "没有为您设置配额"],
  perUser: ["GPUs per user", "每用户 GPU 上限"],
  perJob: ["GPUs per job", "每作业 GPU 上限"],
  longest: ["Longest run", "最长运行时间"],
  everybody: ["applies to all users", "对所有人生效"],
});
