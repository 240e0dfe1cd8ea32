import { defineTexts } from "@/texts/texts";

/** The texts of the actions on a job. */
export const actions = defineTexts({
  stop: ["Stop", "停止"],
  start: ["Start", "启动"],
  requeue: ["Requeue", "重新排队"],
  clone: ["Clone", "克隆"],
  resize: ["Resize", "调整 GPU 数"],
  migrate: ["Migrate", "迁移"],
  pin: ["Pin to the front", "置顶"],
  unpin: ["Unpin", "取消置顶"],
  edit: ["Edit", "编辑"],
  checkpoint: ["Checkpoint now", "立即保存检查点"],
  extend: ["Give more time", "延长时间"],
  remove: ["Remove", "删除"],
});

/** Why an action is not possible, shown before the click. */
export const obstacles = defineTexts({
  notYours: ["Only {user} and operators can do this.", "只有 {user} 和管理员可以执行此操作。"],
  ended: ["The job has ended already.", "作业已经结束。"],
  stopping: ["It is being stopped already.", "作业正在停止。"],
  active: ["It is {state} already.", "作业当前{state}。"],
  onlyRunning: ["Only a running job can do this; this one is {state}.", "仅运行中的作业可以执行；此作业{state}。"],
  onlyQueued: [
    "Only a queued job has a place in line; this one is {state}.",
    "只有排队中的作业才有排队位置；此作业{state}。",
  ],
  notElastic: [
    "It is not elastic: it was submitted without a least and a most number of GPUs.",
    "此作业不是弹性作业：提交时未指定最少和最多 GPU 数。",
  ],
  manyNodes: [
    "It runs on several nodes: requeue it to place it again.",
    "此作业在多个节点上运行：请重新排队以重新放置。",
  ],
  isWorkbench: ["It is a workbench: stop and start it to change its node.", "这是工作台：请停止后重新启动以更换节点。"],
  onlyOperators: ["Only operators pin jobs.", "只有管理员可以置顶作业。"],
  notWarned: ["It was not warned of doing nothing: there is nothing to extend.", "作业没有收到空闲警告，无需延长。"],
  extended: ["It was given more time once already.", "已经延长过一次。"],
  stopFirst: ["It is {state}: stop it first.", "作业{state}：请先停止。"],
});

export const texts = defineTexts({
  more: ["More actions", "更多操作"],
  actionsOf: ["Actions for {name}", "{name} 的操作"],
  stopped: ["{name} is being stopped.", "正在停止 {name}。"],
  started: ["{name} is in the queue.", "{name} 已进入队列。"],
  requeued: ["{name} goes back to its queue.", "{name} 将回到队列。"],
  pinned: ["{name} is first in its line now.", "{name} 已排到队首。"],
  unpinned: ["{name} is in its ordinary place again.", "{name} 已恢复正常位置。"],
  checkpointed: ["{name} was asked to save its work after its present step.", "已请求 {name} 在当前步骤后保存检查点。"],
  extendedNow: ["{name} was given more time.", "已为 {name} 延长时间。"],
  removed: ["{name} was removed.", "{name} 已删除。"],
  edited: ["{name} was changed.", "{name} 已修改。"],
  ofOther: ["The job belongs to {user}.", "该作业属于 {user}。"],
  stopWaitingText: ["The job leaves its line.", "作业将离开队列。"],
  stopTitle: ["Stop {name}?", "停止 {name}？"],
  stopText: [
    "Its program receives SIGTERM and has {grace} to save its work. Its GPUs become free for other jobs.",
    "程序会收到结束通知，并有 {grace} 保存工作，随后释放其占用的资源。",
  ],
  requeueTitle: ["Send {name} back to its queue?", "让 {name} 重新排队？"],
  requeueText: [
    "Its program receives SIGTERM, has {grace} to save, and starts again from its last checkpoint when its turn comes.",
    "程序会收到结束通知，有 {grace} 保存，轮到它时从最近的检查点继续。",
  ],
  removeTitle: ["Remove {name}?", "删除 {name}？"],
  removeText: [
    "The job, its attempts, logs and files are deleted for good.",
    "作业及其尝试记录、日志和文件将被永久删除。",
  ],
  stopJob: ["Stop the job", "停止作业"],
  requeueJob: ["Send it back", "重新排队"],
  removeJob: ["Remove the job", "删除作业"],
  editTitle: ["Edit {name}", "编辑 {name}"],
  queue: ["Queue", "队列"],
  priority: ["Priority", "优先级"],
  priorityHint: ["0 … 100; smaller goes first", "0 … 100，数值越小越优先"],
  time: ["Time limit", "时间上限"],
  timeHint: [
    "Such as 90m, 2h or 1d; empty: as long as the queue allows",
    "如 90m、2h 或 1d；留空表示队列允许的最长时间",
  ],
  timeWrong: ["A number with a unit, such as 90m, 2h or 1d", "请填写带单位的数字，如 90m、2h 或 1d"],
  resizeTitle: ["Resize {name}", "调整 {name} 的 GPU 数"],
  resizeHint: [
    "From {min} to {max}; now {now}. It is warned, saves its work, and goes on with the new number on its node.",
    "{min} 到 {max}；当前 {now}。作业会收到通知、保存工作，然后在原节点上以新的数量继续。",
  ],
  migrateTitle: ["Migrate {name}", "迁移 {name}"],
  migrateHint: [
    "It runs on {node}. It is warned, saves its work, and goes on on the other node.",
    "当前运行在 {node}。作业会收到通知、保存工作，然后在另一个节点上继续。",
  ],
  node: ["Node", "节点"],
  bestNode: ["The best other node", "最合适的其他节点"],
});

/** Previews of resizes and moves. */
export const changes = defineTexts({
  preview: ["Preview", "预览"],
  now: ["Now", "现在"],
  then: ["Afterwards", "之后"],
  atRisk: ["Work at risk", "可能丢失的工作"],
  neverSaved: [
    "At most {hours} GPU-hours: the job never saved a checkpoint.",
    "最多 {hours} GPU 时：此作业从未保存检查点。",
  ],
  savedAt: ["At most {hours} GPU-hours, since the checkpoint of {at}.", "最多 {hours} GPU 时，自 {at} 的检查点起。"],
  waiting: ["Waiting jobs", "等待中的作业"],
  noEffect: ["None starts earlier or later.", "没有作业提前或推迟开始。"],
  startsNow: ["{name} ({job}) starts at once", "{name}（{job}）立即开始"],
  startsOther: ["{name} ({job}): planned start {before} → {after}", "{name}（{job}）：计划开始 {before} → {after}"],
  notPlanned: ["not planned", "未计划"],
  othersJobs: ["{n} {n|job|jobs} of other users", "其他用户的 {n} 个作业"],
  confirmTitle: ["{action} {name}?", "{action} {name}？"],
  confirmText: [
    "Its program receives SIGTERM, has {grace} to save, and starts again as shown in the preview.",
    "程序会收到结束通知，有 {grace} 保存，随后按预览重新启动。",
  ],
  effect: ["Effect", "结果"],
  attempt: ["Attempt {n}", "第 {n} 次尝试"],
  underWay: ["It saves, ends, and goes on on {place}.", "作业正在保存并结束，随后在 {place} 继续。"],
  goesOn: ["It runs on {place} now.", "作业现在运行在 {place}。"],
});
