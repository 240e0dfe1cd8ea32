import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  detail: ["Where the jobs of a pool wait, and the rules of their order", "资源池的作业在此等待，并按规则启动"],
  create: ["New queue", "新建队列"],
  created: ["Queue {name} created", "已创建队列 {name}"],
  saved: ["Queue {name} saved", "已保存队列 {name}"],
  deleted: ["{n} {n|queue|queues} deleted", "已删除 {n} 个队列"],
  titleNew: ["New queue", "新建队列"],
  titleEdit: ["Queue {name}", "队列 {name}"],
  menuOf: ["Actions for {name}", "{name} 的操作"],
  showOrder: ["Show its order", "查看排队顺序"],
  empty: ["No queues", "没有队列"],
  emptyHint: [
    "Every pool has a queue; create more to give some jobs separate rules.",
    "每个资源池自带一个队列；可另建队列，为部分作业设定单独的规则。",
  ],
  defaultOf: ["default queue of pool {pool}", "资源池 {pool} 的默认队列"],
  // columns
  policy: ["Order", "排序策略"],
  blocking: ["Blocking", "阻塞方式"],
  placement: ["Placement", "放置策略"],
  limits: ["Limits", "限制"],
  who: ["Available to", "可用范围"],
  running: ["Running", "运行"],
  queued: ["Waiting", "等待"],
  heldGpus: ["GPUs held", "占用 GPU"],
  heldOf: ["{held} of {guaranteed}", "{held} / {guaranteed}"],
  borrowedLabel: ["GPUs borrowed", "借用的 GPU"],
  borrowed: ["{n} borrowed", "借用 {n}"],
  owedLabel: ["GPUs owed to it", "应得未得的 GPU"],
  owed: ["{n} owed", "应得 {n}"],
  preemptsShort: ["preempts", "可抢占"],
  weightShort: ["weight {n}", "权重 {n}"],
  noLimits: ["none", "无"],
  groupOfPool: ["the group of pool {pool}", "资源池 {pool} 所属的用户组"],
  andGroups: ["and {groups}", "以及 {groups}"],
  limitGpus: ["≤ {n} {n|GPU|GPUs} together", "合计 ≤ {n} GPU"],
  limitLength: ["≤ {n} waiting", "排队 ≤ {n}"],
  limitTime: ["≤ {time}", "时长 ≤ {time}"],
  limitJobMin: ["jobs from {n} {n|GPU|GPUs}", "单作业 ≥ {n} GPU"],
  limitJobMax: ["jobs up to {n} {n|GPU|GPUs}", "单作业 ≤ {n} GPU"],
  limitKinds: ["only {kinds}", "仅限{kinds}"],
  // why it cannot be deleted
  cannotDefault: [
    "This is the default queue of its pool: it is deleted together with the pool.",
    "它是所属资源池的默认队列，只能随资源池一起删除。",
  ],
  cannotUsed: ["{n} {n|job is|jobs are} in it: stop or move {n|it|them} first.", "其中有 {n} 个作业：请先停止或移走。"],
  cannotSome: ["Cannot be deleted: {names}", "不能删除：{names}"],
  deleteTitle: ["Delete queue {name}?", "删除队列 {name}？"],
  deleteTitleMany: ["Delete {n} queues?", "删除 {n} 个队列？"],
  deleteText: [
    "{n|The queue has|The queues have} no jobs. Submissions that name {n|it|them} will be refused. Several queues are deleted together, or none.",
    "其中没有作业。此后提交作业时再指定会被拒绝。多个队列要么全部删除，要么全部保留。",
  ],
  deleteAction: ["Delete {n|the queue|the queues}", "删除队列"],
  // form
  name: ["Name", "名称"],
  nameHint: [
    "Up to 63 letters, digits, - and _. It cannot be changed later.",
    "最多 63 个字母、数字、- 和 _，之后不能修改。",
  ],
  nameTaken: ["A queue with this name exists", "已有同名队列"],
  poolHint: [
    "The pool whose GPUs its jobs use. It cannot be changed later.",
    "作业使用的 GPU 所在的资源池，之后不能修改。",
  ],
  policyTitle: ["Order of waiting jobs", "等待作业的顺序"],
  blockingTitle: ["When the first job does not fit", "队首作业放不下时"],
  backfill: ["Backfill", "回填"],
  backfillHint: [
    "Later jobs may pass if that does not delay the first one's planned start.",
    "在不推迟队首计划启动时间的前提下，后面的作业可先启动。",
  ],
  strict: ["Strict", "严格"],
  strictHint: [
    "No job passes the first one. GPUs may stay idle, and the first job gets them soonest.",
    "任何作业都不能越过队首；GPU 可能闲置，但队首最早启动。",
  ],
  placementTitle: ["Choice of the node", "选择节点"],
  preempts: ["Preempt running jobs by order", "次序在前的作业可抢占运行中的作业"],
  preemptsHint: [
    "A waiting job preempts preemptible jobs of this queue that rank strictly after it. They save their work and resume later.",
    "等待中的作业可取代本队列中次序严格在其后的可抢占作业；被取代者会保存进度并在之后恢复。",
  ],
  preemptsNot: [
    "This order has no strict rank, so no waiting job ranks before a running one.",
    "此排序策略没有严格次序，因此没有作业能先于运行中的作业。",
  ],
  sharesTitle: ["Share of the pool", "与同一资源池的其他队列相比"],
  guaranteed: ["Guaranteed GPUs", "保证 GPU"],
  guaranteedHint: [
    "Its jobs reclaim them from jobs of other queues that borrowed them. 0: none.",
    "其作业可从借用者处收回。0 表示不保证。",
  ],
  weight: ["Weight", "权重"],
  weightHint: [
    "Of two queues whose jobs have waited equally long, the one with the larger weight goes first. The default is 1.",
    "等待时间相同时，权重较大的队列优先。通常为 1。",
  ],
  weightWrong: ["A number above 0", "请填写大于 0 的数"],
  limitsTitle: ["Limits (empty: none)", "限制（留空表示不限）"],
  maxGpus: ["GPUs held together", "合计占用 GPU"],
  maxGpusHint: [
    "All running jobs of the queue together; jobs that would exceed it wait.",
    "所有运行作业的总和；超出者等待。",
  ],
  maxLength: ["Waiting jobs", "排队作业数"],
  maxLengthHint: ["Submissions beyond this number are refused.", "超出时拒绝提交。"],
  maxTime: ["Longest run time", "最长运行时间"],
  maxTimeHint: [
    "For example 90m, 2h or 1d12h. Jobs without a time limit get this one.",
    "例如 90m、2h、1d12h；未设时限的作业采用此值。",
  ],
  timeWrong: ["Write a time such as 90m, 2h or 1d12h", "请填写时间，例如 90m、2h 或 1d12h"],
  minJob: ["GPUs of a job, at least", "单作业 GPU 下限"],
  maxJob: ["GPUs of a job, at most", "单作业 GPU 上限"],
  jobHint: ["Jobs outside of this range go to other queues.", "超出范围的作业会进入其他队列。"],
  minOverMax: ["The smallest is above the largest", "下限大于上限"],
  whole: ["A whole number from 0 on", "请填写不小于 0 的整数"],
  kindsTitle: ["Kinds of jobs", "作业类型"],
  kindsHint: ["None chosen: every kind.", "不选表示所有类型。"],
  groupsTitle: ["Groups", "用户组"],
  groupsHint: [
    "In addition to the group of the pool, whose members can always use the queue.",
    "拥有该资源池的用户组始终可用，此处指定其他用户组。",
  ],
  editHint: [
    "Waiting jobs are ordered by the new settings at once; running jobs are not affected.",
    "保存后等待中的作业立即按新设置排序；运行中的作业不受影响。",
  ],
});

/** Names of ordering policies. One that is missing here is shown by its code. */
export const orderings = defineTexts({
  "fair-share": ["Fair share", "公平共享"],
  priority: ["Priority", "优先级"],
  fcfs: ["First come, first served", "先到先得"],
  shortest: ["Shortest first", "短作业优先"],
  weighted: ["Weighted", "加权"],
});

/** The description of each ordering policy. The server describes policies that are missing here. */
export const orderingHints = defineTexts({
  "fair-share": [
    "Jobs of the user with the lower recent usage start first; each user orders their own jobs.",
    "近期使用较少的用户优先；每人可调整自己作业的顺序。",
  ],
  priority: [
    "The smaller number first, then by age. Users cannot order their own jobs.",
    "数字小者优先，其次按提交先后；用户不能自定顺序。",
  ],
  fcfs: ["By submission time alone, regardless of user and size.", "只按提交先后，不论用户和大小。"],
  shortest: [
    "The least expected GPU time first, as learned from earlier runs; jobs that have waited long move ahead of later ones.",
    "预计 GPU 时长最短者优先（根据以往运行学习）；等待久的作业会排到后来者之前。",
  ],
  weighted: [
    "Priority, size, age and expected run time, weighed as the configuration says.",
    "按配置的权重综合优先级、规模、等待时间和预计时长。",
  ],
});

/** Placement policies. One that is missing here is described by the server. */
export const placements = defineTexts({
  fragmentation: [
    "Fragmentation: where the least GPU is expected to stay unusable, given what is asked for here",
    "碎片最少：根据近期请求，选择预计剩余不可用 GPU 最少的节点",
  ],
  pack: [
    "Pack: the fullest node that has room, to keep whole nodes free",
    "紧凑：优先放入仍有空间的最满节点，保留整节点",
  ],
  spread: ["Spread: the emptiest node", "分散：优先最空的节点"],
  "round-robin": ["Round robin: one node after the other", "轮转：依次使用各节点"],
  "least-loaded": ["Least loaded: the node with the lowest measured load", "最低负载：优先实测负载最低的节点"],
});
