import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  title: ["First steps", "快速入门"],
  done: ["{done} of {all} done", "已完成 {done}/{all}"],
  isDone: ["done", "已完成"],
  isOpen: ["to do", "待完成"],
  dismiss: ["Dismiss", "不再显示"],
  dismissed: ["First steps are hidden. Settings shows them again.", "快速入门已隐藏，可在设置中重新显示。"],
  allDone: ["All steps are done.", "所有步骤均已完成。"],
});

/** By the name of a step: what to do, and why. */
export const steps = defineTexts({
  password: ["Change the first password", "修改初始密码"],
  gpus: ["See the GPUs", "检测到 GPU"],
  job: ["Complete a first job", "完成第一个作业"],
  people: ["Add people", "添加用户"],
  channel: ["Get notices of alerts", "接收告警通知"],
  backup: ["Make backups", "启用备份"],
  submit: ["Submit a first job", "提交第一个作业"],
  token: ["Use the command line", "使用命令行"],
});

export const hints = defineTexts({
  password: ["The password of the first start works once.", "首次启动时的密码只能使用一次。"],
  gpus: [
    "GPUs of this machine and of clusters are found by themselves. If one is missing:",
    "本机及各集群的 GPU 会自动发现。如有缺失：",
  ],
  job: ["It shows that GPUs, storage and logs work.", "用于确认 GPU、存储与日志均正常。"],
  people: [
    "Create users, or let them sign in with GitHub, GitLab or OIDC.",
    "创建用户，或让其通过 GitHub、GitLab 或 OIDC 登录。",
  ],
  channel: ["Alerts are sent by mail, to a chat or to a webhook.", "告警可通过邮件、聊天工具或 Webhook 发送。"],
  backup: [
    "Set backup.to in corral.yaml: a directory on another disk, or a bucket.",
    "在 corral.yaml 中设置 backup.to：另一块磁盘上的目录，或存储桶。",
  ],
  submit: ["The form shows when the job would start while you fill it in.", "填写表单时即可看到作业的预计启动时间。"],
  token: ["Sign in once at a terminal, or create a token here.", "在终端登录一次，或在此创建令牌。"],
});
