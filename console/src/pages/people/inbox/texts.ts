import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  unread: ["{n} unread", "{n} 条未读"],
  allRead: ["Everything is read", "全部已读"],
  markRead: ["Mark all as read", "全部标为已读"],
  onlyUnread: ["Only unread", "仅未读"],
  settings: ["What is shown", "显示内容"],
  empty: ["Nothing has happened yet", "暂无消息"],
  emptyHint: [
    "Starts, ends, failures and preemptions of your jobs, full volumes and shares appear here.",
    "作业的开始、结束、失败、被抢占，存储卷将满以及收到的共享都会显示在这里。",
  ],
  isNew: ["new", "新"],
  receipt: ["Receipt {n}", "凭据 {n}"],
  kind: ["Kind", "类型"],
  what: ["What happened", "内容"],
  when: ["When", "时间"],
  more: ["Older items are in the audit log.", "更早的记录见审计日志。"],
  kindsTitle: ["Shown in the inbox", "收件箱显示"],
  kindsHint: ["Kinds that are switched off are neither listed nor counted.", "关闭的类型不会列出，也不计数。"],
  saved: ["Inbox settings saved", "收件箱设置已保存"],
  browserTitle: ["Notifications of this browser", "浏览器通知"],
  browserHint: [
    "While a page of the console is open, new items are also shown by the browser.",
    "控制台页面打开时，新消息会同时由浏览器弹出。",
  ],
  browserOn: ["Show new items as notifications", "以通知显示新消息"],
  browserRefused: ["The browser does not allow notifications of this page.", "浏览器未允许此页面发送通知。"],
});

export const kinds = defineTexts({
  started: ["started", "已开始"],
  ended: ["ended", "已结束"],
  failed: ["failed", "失败"],
  preempted: ["preempted", "被抢占"],
  idle: ["idle", "闲置"],
  stalled: ["stalled", "停滞"],
  storage: ["storage", "存储"],
  shared: ["shared with you", "共享给您"],
  fleet: ["fleet", "集群"],
});

export const actions = defineTexts({
  "job.running": ["{name} has started", "{name} 已开始运行"],
  "job.completed": ["{name} has completed", "{name} 已完成"],
  "job.stopped": ["{name} was stopped", "{name} 已停止"],
  "job.failed": ["{name} has failed", "{name} 失败"],
  "job.preempting": ["{name} is preempted", "{name} 被抢占"],
  "job.moving": ["{name} moves to another node", "{name} 正在迁移到其他节点"],
  "job.idle-warned": ["{name} does not use its GPUs", "{name} 未使用其 GPU"],
  "job.idle-stopped": ["{name} was stopped because it did not use its GPUs", "{name} 因未使用 GPU 被停止"],
  "job.hung": ["{name} hangs: it does no more steps", "{name} 已停滞：没有新的步数"],
  "job.slow": ["{name} is slower than before", "{name} 比之前变慢"],
  "volume.nearly-full": ["Volume {name} is nearly full", "存储卷 {name} 将满"],
  "volume.share-received": ["Volume {name} was shared with you", "存储卷 {name} 已共享给您"],
  "dataset.share-received": ["Dataset {name} was shared with you", "数据集 {name} 已共享给您"],
  "node.drained": ["Node {name} is drained", "节点 {name} 已排空"],
});
