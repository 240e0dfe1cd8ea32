import { defineTexts } from "@/texts/texts";

/** Alerts of the built-in rules in whole sentences, from their subject and value. The server's own English says more. */
export const sentences = defineTexts({
  "gpu-temperature": ["GPU {subject} is at {value}", "GPU {subject} 温度为 {value}"],
  "gpu-errors": ["GPU {subject} reported memory errors", "GPU {subject} 报告了显存错误"],
  "gpu-power": ["GPU {subject} draws {value} of its power limit", "GPU {subject} 功耗达到上限的 {value}"],
  "gpu-memory": ["The memory of GPU {subject} is {value} full", "GPU {subject} 显存已使用 {value}"],
  "gpu-idle": ["GPU {subject} has done nothing for {value}", "GPU {subject} 已空转 {value}"],
  "gpu-suspect": ["GPU {subject} is suspect", "GPU {subject} 状态可疑"],
  "gpu-failed": ["GPU {subject} has failed", "GPU {subject} 已发生故障"],
  "node-lost": ["Node {subject} is down", "节点 {subject} 已离线"],
  "job-failed": ["Job {subject} of {owner} failed", "{owner} 的作业 {subject} 失败"],
  "queue-length": ["{value} jobs wait in queue {subject}", "队列 {subject} 中有 {value} 个作业等待"],
  "queue-wait": ["The longest wait in queue {subject} is {value}", "队列 {subject} 的最长等待为 {value}"],
  "plan-failed": ["Queue {subject} cannot be planned", "队列 {subject} 无法调度"],
  "gpu-power-watts": ["GPU {subject} draws {value}", "GPU {subject} 功耗为 {value}"],
  "gpu-utilization": ["GPU {subject} is {value} busy", "GPU {subject} 利用率为 {value}"],
  "gpus-free": ["{value} GPUs of pool {subject} are free", "资源池 {subject} 有 {value} 个空闲 GPU"],
  "row-unreadable": ["The row {subject} cannot be read and is left out", "记录 {subject} 无法读取，已跳过"],
  "no-standby": ["Server {subject} leads, and no other server could take over", "服务器 {subject} 无备用服务器可接管"],
  "volume-nearly-full": ["Volume {subject} of {owner} is {value} full", "{owner} 的存储卷 {subject} 已使用 {value}"],
  "volume-full": ["Volume {subject} of {owner} is {value} full", "{owner} 的存储卷 {subject} 已使用 {value}"],
});
