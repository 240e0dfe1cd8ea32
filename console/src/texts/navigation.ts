import { defineTexts } from "@/texts/texts";

export const navigation = defineTexts({
  overview: ["Overview", "概览"],
  jobs: ["Jobs", "作业"],
  job: ["Job", "作业"],
  newJob: ["New job", "新建作业"],
  workbenches: ["Workbenches", "工作台"],
  queue: ["Queue", "排队"],
  reservations: ["Reservations", "预留"],
  whatIf: ["What if", "假设分析"],
  question: ["What if", "假设分析"],
  volumes: ["Volumes", "存储卷"],
  volume: ["Volume", "存储卷"],
  datasets: ["Datasets", "数据集"],
  dataset: ["Dataset", "数据集"],
  images: ["Images", "镜像"],
  cluster: ["Cluster status", "集群状态"],
  nodes: ["Nodes", "节点"],
  node: ["Node", "节点"],
  gpus: ["GPUs", "GPU"],
  gpu: ["GPU", "GPU"],
  pools: ["Pools", "资源池"],
  users: ["Users", "用户"],
  groups: ["Groups", "用户组"],
  permissionGroups: ["Permission groups", "权限组"],
  quotas: ["Quotas", "配额"],
  packages: ["Packages", "套餐"],
  flavors: ["Flavors", "规格"],
  queues: ["Queues", "队列"],
  presets: ["Presets", "训练模板"],
  alerts: ["Alerts", "告警"],
  analysis: ["Analysis", "分析"],
  reports: ["Reports", "报表"],
  audit: ["Audit log", "审计日志"],
  settings: ["Settings", "设置"],
});

export type NavigationText = keyof typeof navigation;

export const sections = defineTexts({
  work: ["Work", "工作"],
  storage: ["Storage", "存储"],
  fleet: ["Fleet", "集群"],
  people: ["People", "人员"],
  catalog: ["Catalog", "目录"],
  insight: ["Insight", "洞察"],
  account: ["Account", "账户"],
});
