import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  clusters: ["Clusters", "集群"],
  cluster: ["Cluster", "集群"],
  allClusters: ["All clusters", "全部集群"],
  ofAll: ["of all clusters", "全部集群合计"],
  local: ["this machine", "本机"],
  slurm: ["Slurm", "Slurm"],
  notAsked: ["not asked yet", "尚未查询"],
  answersSince: ["answers since {at}", "自 {at} 起正常"],
  silentSince: ["does not answer since {at}", "自 {at} 起无响应"],
  nodes: ["{ready} of {n} {n|node|nodes} ready", "{n} 个节点中 {ready} 个就绪"],
  free: ["{free} of {n} {n|GPU|GPUs} free", "{n} 个 GPU 中 {free} 个空闲"],
  taken: ["{n} taken by others", "{n} 个被外部占用"],
  trouble: ["Cluster {name} does not answer", "集群 {name} 无响应"],
  troubleSince: ["Cluster {name} does not answer since {at}", "集群 {name} 自 {at} 起无响应"],
  troubleText: [
    "What runs there goes on; nothing new starts until it answers again. {detail}",
    "已运行的作业继续；恢复响应前不会启动新作业。{detail}",
  ],
});
