import { defineWords } from "@/words/words";

export const words = defineWords({
  clusters: ["Clusters", "集群"],
  answers: ["answers", "正常"],
  silent: ["does not answer", "无响应"],
  nodes: ["{ready} of {n} nodes ready", "{n} 个节点中 {ready} 个就绪"],
  free: ["{free} of {n} GPUs free", "{n} 块 GPU 中 {free} 块空闲"],
  taken: ["{n} taken by others", "{n} 块被外部占用"],
  trouble: ["Cluster {name} does not answer", "集群 {name} 无响应"],
  troubleText: [
    "What runs there goes on; nothing new starts until it answers again. {detail}",
    "已运行的作业继续；恢复响应前不会启动新作业。{detail}",
  ],
});
