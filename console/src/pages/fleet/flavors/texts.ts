import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  detail: ["named kinds of hardware that packages and jobs ask for", "供套餐和作业指定的硬件类别"],
  create: ["New flavor", "新建规格"],
  created: ["Flavor {name} created", "已创建规格 {name}"],
  saved: ["Flavor {name} saved", "已保存规格 {name}"],
  deleted: ["{n} {n|flavor|flavors} deleted", "已删除 {n} 个规格"],
  titleEdit: ["Flavor {name}", "规格 {name}"],
  menuOf: ["Actions for {name}", "{name} 的操作"],
  empty: ["No flavors yet", "还没有规格"],
  emptyHint: [
    "A flavor names a GPU model and node labels, so that people need not know them.",
    "规格为 GPU 型号和节点标签命名，用户无需了解细节。",
  ],
  models: ["GPU models", "GPU 型号"],
  anyModel: ["any", "任意"],
  labels: ["Node labels", "节点标签"],
  noLabels: ["none", "无"],
  gpusTotal: ["GPUs of this kind", "此类 GPU 数"],
  packages: ["Packages", "套餐"],
  noneYet: ["none", "无"],
  cannotUsed: [
    "Used by {n|package|packages} {names}: delete or change {n|it|them} first.",
    "被套餐 {names} 使用：请先删除或修改这些套餐。",
  ],
  cannotSome: ["Still used by packages: {names}", "仍被套餐使用：{names}"],
  deleteTitle: ["Delete flavor {name}?", "删除规格 {name}？"],
  deleteTitleMany: ["Delete {n} flavors?", "删除 {n} 个规格？"],
  deleteText: [
    "{n|It|They} can no longer be selected. Jobs that were submitted with {n|it|them} keep what they asked for. Several are deleted together, or none of them.",
    "之后将无法再选用。已提交的作业保持原有要求。多个规格要么全部删除，要么全部保留。",
  ],
  deleteAction: ["Delete {n|the flavor|the flavors}", "删除规格"],
  nameHint: [
    "Up to 63 letters, digits, - and _. It cannot be changed later.",
    "最多 63 个字母、数字、- 和 _，之后不能修改。",
  ],
  nameWrong: ["Up to 63 letters, digits, - and _", "最多 63 个字母、数字、- 和 _"],
  nameTaken: ["There is a flavor of this name", "已有同名规格"],
  editHint: [
    "Jobs that were submitted with it keep what they asked for: changes hold for later jobs.",
    "已提交的作业保持原有要求，修改只对之后的作业生效。",
  ],
  modelsHint: [
    "Those of the fleet are offered; any of them will do. None: any model.",
    "可从集群现有型号中选择，任一型号均可；不选表示任意型号。",
  ],
  cpusPerGpu: ["CPUs per GPU", "每块 GPU 的 CPU"],
  memoryPerGpu: ["Memory per GPU", "每块 GPU 的内存"],
  defaultGpus: ["GPUs by default", "默认 GPU 数"],
  perGpuHint: [
    "Used for what a job leaves out: CPUs, memory, or the number of GPUs. 0 adds nothing.",
    "用于作业未指定的部分：CPU、内存或 GPU 数。0 表示不添加。",
  ],
  perGpuOf: ["{cpus} CPU · {memory} per GPU", "每块 GPU {cpus} CPU · {memory}"],
  labelsHint: ["Written key=value. A node must have all of them.", "写作 key=value；节点须具备全部标签。"],
  labelWrong: ["Write key=value: {label}", "请写作 key=value：{label}"],
  labelTwice: ["{key} is there twice", "{key} 重复"],
  preview: ["What it means", "规格含义"],
  matches: [
    "{gpus} {gpus|GPU|GPUs} on {nodes} {nodes|node|nodes} are of this kind.",
    "共有 {nodes} 个节点上的 {gpus} 个 GPU 属于此类。",
  ],
  matchesNone: [
    "No GPU of the fleet is of this kind: jobs that ask for it would be refused.",
    "集群中没有此类 GPU：指定它的作业会被拒绝。",
  ],
});
