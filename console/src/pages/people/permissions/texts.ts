import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  detail: [
    "Which functions a set of users may use. Operators may do everything.",
    "一组用户可以使用哪些功能。管理员可以使用全部功能。",
  ],
  create: ["Create permission group", "创建权限组"],
  createTitle: ["New permission group", "新建权限组"],
  editTitle: ["Permission group {name}", "权限组 {name}"],
  label: ["Permission groups", "权限组"],
  allows: ["Allows", "允许"],
  everything: ["everything", "全部功能"],
  nothing: ["only looking", "仅可查看"],
  members: ["Members", "成员"],
  noMembers: ["no members", "暂无成员"],
  more: ["and {n} more", "等另外 {n} 人"],
  actionsOf: ["Actions for {name}", "{name} 的操作"],
  nameHint: ["Up to 63 letters, digits, - and _.", "最多 63 个字母、数字、- 和 _。"],
  nameTaken: ["A permission group with this name exists", "已有同名权限组"],
  functions: ["Functions", "功能"],
  functionsHint: [
    "Removing a function applies from the next request on; waiting and running jobs continue.",
    "取消某项功能从下一次请求起生效；等待或运行中的作业不受影响。",
  ],
  created: ["Permission group {name} created", "权限组 {name} 已创建"],
  saved: ["Permission group {name} saved", "权限组 {name} 已保存"],
  deleted: ["Permission group {name} deleted", "权限组 {name} 已删除"],
  deleteTitle: ["Delete permission group {name}?", "删除权限组 {name}？"],
  deleteText: ["It has no members, so no user is affected.", "其中没有成员，不影响任何人。"],
  deleteAction: ["Delete the permission group", "删除权限组"],
  isEveryone: [
    "The group everyone cannot be deleted: new users belong to it.",
    "everyone 权限组不能删除：新用户会加入其中。",
  ],
  hasUsers: [
    "It has {n} {n|user|users}: assign {n|that one|them} to another first.",
    "它有 {n} 个用户：请先分配到其他权限组。",
  ],
  assign: ["Assign users", "分配用户"],
  assignTitle: ["Assign users to {name}", "将用户分配到 {name}"],
  assignHint: [
    "The users leave their present permission groups. A permission group has no effect on operators.",
    "所选用户将离开当前的权限组。对管理员暂时没有影响。",
  ],
  usersLabel: ["Users", "用户"],
  userIn: ["{name} (in {group})", "{name}（在 {group}）"],
  assigned: ["{n} {n|user|users} assigned to {name}", "已将 {n} 个用户分配到 {name}"],
});

/** The name and the description of each function. */
export const functions = defineTexts({
  train: ["Training", "训练"],
  distribute: ["Distributed training", "分布式训练"],
  workbench: ["Workbenches", "工作台"],
  tasks: ["Tasks", "任务"],
  volumes: ["Volumes", "存储卷"],
  datasets: ["Datasets", "数据集"],
  images: ["Images", "镜像"],
  "see-others-jobs": ["Others' jobs", "他人作业"],
  tokens: ["Tokens", "令牌"],
});

export const meanings = defineTexts({
  train: ["Submit training jobs on one node, from templates too.", "提交单节点训练作业，包括使用模板。"],
  distribute: ["Submit jobs that span several nodes.", "提交跨多个节点的作业。"],
  workbench: ["Open interactive workbenches with a notebook and a terminal.", "打开带有笔记本和终端的交互式工作台。"],
  tasks: ["Hold GPUs from the command line for programs that corral does not start.", "从命令行为自己的程序占用 GPU。"],
  volumes: ["Create and delete storage volumes.", "创建和删除存储卷。"],
  datasets: ["Create and delete versions of datasets.", "创建和删除数据集版本。"],
  images: ["Add images and logins to registries.", "添加镜像和镜像仓库登录。"],
  "see-others-jobs": ["See the jobs of other users, with their logs.", "查看其他用户的作业及其日志。"],
  tokens: ["Create API tokens for programs.", "为程序创建 API 令牌。"],
});
