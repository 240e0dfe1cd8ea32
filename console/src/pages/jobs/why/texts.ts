import { defineTexts } from "@/texts/texts";

/** The titles of reasons, by the server's name of the rule. */
export const titles = defineTexts({
  dependency: ["Comes after other jobs", "等待前置作业"],
  "back-off": ["Pause before the next retry", "重试前的等待"],
  "given-back": ["Its cluster gave it back", "被集群退回"],
  "queue-missing": ["Its queue was deleted", "队列已不存在"],
  membership: ["Pool of another group", "资源池不属于所在用户组"],
  "gpus-per-job": ["Larger than one job may be", "超过单个作业上限"],
  "gpus-per-user": ["Limit per user reached", "达到用户上限"],
  "total-gpus": ["Limit of the installation reached", "达到全局上限"],
  "queue-gpus": ["Limit of the queue reached", "达到队列上限"],
  quota: ["Quota reached", "配额不足"],
  "over-budget": ["Over budget", "超出预算"],
  check: ["GPU to be checked is busy", "待检测的 GPU 被占用"],
  impossible: ["Fits nowhere", "没有可容纳的节点"],
  resources: ["Not enough is free", "空闲资源不足"],
  resizing: ["Others are making room", "其他作业正在让出资源"],
  kept: ["Room is kept for others", "空位已为其他作业保留"],
  order: ["Strict order", "严格顺序"],
  "limit-kept": ["The rest of the limit is kept", "剩余额度已保留"],
  owed: ["GPUs are owed to other queues", "GPU 应留给其他队列"],
  reserved: ["GPUs are reserved for others", "GPU 已为他人预留"],
  "giving-way": ["Other jobs are being preempted for it", "正在为它抢占其他作业"],
  mount: ["A volume is in use", "存储卷正被使用"],
  "mount-kept": ["A volume is kept for another job", "存储卷已为其他作业保留"],
  "volume-full": ["A volume is full", "存储卷已满"],
  "volume-missing": ["A volume is not there", "存储卷不可用"],
});

/** The same in whole sentences, from the numbers. The server's own English ones name more; these serve where it does not speak. */
export const sentences = defineTexts({
  dependency: [
    "It comes after {jobs} {jobs|job|jobs} that {jobs|has|have} not completed.",
    "它排在 {jobs} 个尚未完成的作业之后。",
  ],
  dependencyUntil: [
    "It comes after {jobs} {jobs|job|jobs}, which end in {seconds_left} at the latest.",
    "它排在 {jobs} 个作业之后，最迟 {seconds_left} 后结束。",
  ],
  "back-off": [
    "After platform failure {faults} in a row it is tried again in {seconds_left}.",
    "平台连续第 {faults} 次故障后，将在 {seconds_left} 后重试。",
  ],
  "given-back": [
    "Its cluster gave it back {times} times in a row before it began; it is tried again in {seconds_left}: {said}",
    "集群在其开始前已连续退回 {times} 次，{seconds_left} 后再次尝试。集群的说明：{said}",
  ],
  "queue-missing": ["Its queue does not exist any more; choose another one.", "所在队列已不存在，请选择其他队列。"],
  membership: [
    "Its queue is in a pool that its owner's group does not have.",
    "该队列所属的资源池未分配给作业所有者所在的用户组。",
  ],
  "gpus-per-job": [
    "One job may hold {limit} GPUs; it asks for {asked}.",
    "单个作业最多使用 {limit} 个 GPU，此作业申请 {asked} 个。",
  ],
  "gpus-per-user": [
    "Its owner may hold {limit} GPUs: holds {held}, and asks for {asked} more.",
    "所有者最多使用 {limit} 个 GPU：已占用 {held} 个，此作业还要 {asked} 个。",
  ],
  "total-gpus": [
    "All jobs together may hold {limit} GPUs: {held} are held, it asks for {asked}.",
    "全部作业最多使用 {limit} 个 GPU：已占用 {held} 个，此作业申请 {asked} 个。",
  ],
  "queue-gpus": [
    "Its queue may hold {limit} GPUs: {held} are held, it asks for {asked}.",
    "该队列最多使用 {limit} 个 GPU：已占用 {held} 个，此作业申请 {asked} 个。",
  ],
  mount: [
    "Volume {volume} has one writer or many readers, and {jobs} {jobs|job uses|jobs use} it.",
    "存储卷 {volume} 只能有一个写入者或多个读取者，目前有 {jobs} 个作业在使用。",
  ],
  "volume-full": [
    "Volume {volume} is full, and the job would write to it: delete something, or make it larger.",
    "存储卷 {volume} 已满，而此作业要写入：请删除数据或扩容。",
  ],
  "volume-missing": [
    "Volume {volume} is not ready, or does not exist any more.",
    "存储卷 {volume} 尚未就绪或已不存在。",
  ],
  quota: [
    "Quota for {resource}: limit {limit}, held {held}, asked {asked}.",
    "{resource}配额：上限 {limit}，已占用 {held}，申请 {asked}。",
  ],
  "over-budget": [
    "{account} is over budget by {over_micro} ({unit}): spent {spent_micro} of {limit_micro}.",
    "{account} 超出预算 {over_micro}（{unit}）：已用 {spent_micro}，上限 {limit_micro}。",
  ],
  impossible: [
    "No ready nodes can ever hold {asked_gpus} GPUs on {asked_nodes} {asked_nodes|node|nodes}: {nodes} could be used, the largest has {largest_node}.",
    "没有就绪节点能容纳 {asked_nodes} 个节点、每个 {asked_gpus} 个 GPU：可用节点 {nodes} 个，最大的有 {largest_node} 个 GPU。",
  ],
  resources: [
    "It needs {asked_gpus} GPUs on {asked_nodes} {asked_nodes|node|nodes}; {free_gpus} are free, at most {most_free_on_a_node} on one node.",
    "需要 {asked_nodes} 个节点、每个 {asked_gpus} 个 GPU；目前空闲 {free_gpus} 个，单个节点最多空闲 {most_free_on_a_node} 个。",
  ],
  resizing: [
    "Elastic jobs give back {coming_gpus} GPUs, within {grace_seconds} at the latest.",
    "弹性作业将让出 {coming_gpus} 个 GPU，最迟 {grace_seconds} 内完成。",
  ],
  kept: [
    "There is room, but {kept_gpus} GPUs are kept for jobs with a planned start, and this one could run into it.",
    "虽有空位，但 {kept_gpus} 个 GPU 已为有预定启动时间的作业保留，而此作业可能运行到那之后。",
  ],
  order: [
    "Its queue is strict: nothing passes the job that waits in front.",
    "队列采用严格顺序：不能越过排在前面的作业。",
  ],
  "limit-kept": ["What is left of a limit is kept for a job that came first.", "剩余额度已为更早的作业保留。"],
  owed: [
    "It cannot be preempted, and so leaves {owed} GPUs to queues that they are guaranteed to: asks {asked}, free {free}.",
    "此作业不可抢占，因此须为有保证额度的队列留出 {owed} 个 GPU：申请 {asked} 个，空闲 {free} 个。",
  ],
  "giving-way": [
    "Other jobs give {coming_gpus} GPUs back for it, within {grace_seconds} at the latest.",
    "其他作业将为其让出 {coming_gpus} 个 GPU，最迟 {grace_seconds} 内完成。",
  ],
  reserved: [
    "{reserved_gpus} GPUs are reserved: {reservations}; {free_reserved_gpus} of them are free.",
    "{reserved_gpus} 个 GPU 已预留（{reservations}），其中 {free_reserved_gpus} 个空闲。",
  ],
});

export const resources = defineTexts({
  gpus: ["GPUs", "GPU "],
  cpus: ["CPUs", "CPU "],
  memory_bytes: ["memory", "内存"],
});

/** The labels of a reason's numbers. */
export const numbers = defineTexts({
  asked: ["asked", "申请"],
  held: ["held", "已占用"],
  limit: ["limit", "上限"],
  account: ["account", "账户"],
  unit: ["unit", "单位"],
  spent_micro: ["spent", "已用"],
  limit_micro: ["hard limit", "硬上限"],
  over_micro: ["over by", "超出"],
  asked_gpus: ["GPUs asked per node", "每节点申请 GPU"],
  asked_nodes: ["nodes asked", "申请节点"],
  free_gpus: ["GPUs free", "空闲 GPU"],
  most_free_on_a_node: ["most free on a node", "单节点最多空闲"],
  jobs_holding: ["jobs holding them", "占用的作业"],
  most_free_cpus_on_a_node: ["most free CPUs on a node", "单节点最多空闲 CPU"],
  most_free_memory_bytes_on_a_node: ["most free memory on a node", "单节点最多空闲内存"],
  nodes: ["usable nodes", "可用节点"],
  largest_node: ["GPUs of the largest node", "最大节点 GPU"],
  kept_gpus: ["GPUs kept", "保留 GPU"],
  coming_gpus: ["GPUs coming back", "即将让出 GPU"],
  grace_seconds: ["within", "时限"],
  seconds_left: ["time left", "剩余时间"],
  faults: ["platform failures in a row", "平台连续故障"],
  jobs: ["jobs before it", "前置作业"],
  free: ["free", "空闲"],
  owed: ["owed to others", "应留给其他队列"],
  reserved_gpus: ["GPUs reserved", "已预留 GPU"],
  free_reserved_gpus: ["of them free", "其中空闲"],
  own_gpus: ["GPUs reserved for it", "为其预留的 GPU"],
  free_own_gpus: ["of them free", "其中空闲"],
  opens_in_seconds: ["opens in", "开放于"],
});

export const texts = defineTexts({
  title: ["Why it waits", "为什么在等待"],
  starts: ["It starts in a moment.", "即将启动。"],
  startsNext: ["Nothing holds it: it starts with the next round of the scheduler.", "没有阻碍：将在下一轮调度时启动。"],
  onlyAhead: ["{n} {n|job is|jobs are} in front of it.", "前面还有 {n} 个作业。"],
  noneAhead: ["No job is ahead of it.", "前面没有其他作业。"],
  held: ["It is created but not started: start it to put it in the queue.", "作业已创建但未启动：启动后才会进入队列。"],
  position: ["Place in line", "排队位置"],
  expected: ["Expected start", "预计启动"],
  unknownStart: ["not known yet", "尚不确定"],
  unknownHint: [
    "Some jobs in its way have no time limit, or its turn is too far away.",
    "前面的作业没有时间上限，或轮到它还太远。",
  ],
  estimate: ["Estimated start", "预计启动时间"],
  estimateText: [
    "half of the time before {p50}, nine times in ten before {p90}",
    "半数情况在 {p50} 之前，九成情况在 {p90} 之前",
  ],
  // The server's words for the basis are English; what they have in common is said instead.
  estimateBasis: ["{basis}; computed {when}", "由调度器向前推演得出；{when}计算"],
  atLatest: ["at the latest {when}", "最迟 {when}"],
  about: ["about {when}", "约{when}"],
  now: ["now", "现在"],
  inTime: ["in {time}", "{time} 后"],
  anyMoment: ["any moment", "随时"],
  onNodes: ["On", "节点"],
  jobsInWay: ["In its way", "相关作业"],
  more: ["and {n} more", "等另外 {n} 个"],
  ahead: ["Jobs in front", "排在前面的作业"],
  none: ["none", "无"],
  someoneElse: ["a job of {user}", "{user} 的作业"],
  suggestions: ["What would help", "可行的办法"],
  apply: ["Apply", "应用"],
  applyNamed: ["Apply: {title}", "应用：{title}"],
  startsAtOnce: ["starts at once", "立即启动"],
  startsEarlier: ["starts {when}", "{when}启动"],
  applied: ["Changed. {effect}", "已修改。{effect}"],
  effectRuns: ["The job starts now.", "作业正在启动。"],
  effectPlanned: ["It is expected to start {when} now.", "现在预计 {when} 启动。"],
  effectWaits: ["It still waits: see why below.", "仍在等待：请看下面的原因。"],
});

/** The texts of a suggestion, by the changed fields. */
export const changes = defineTexts({
  start: ["Start it", "启动作业"],
  startDetail: ["It is held until it is started.", "作业在启动前不会排队。"],
  queue: ["Move it to queue {queue}", "移到队列 {queue}"],
  queueDetail: ["That queue takes such jobs.", "该队列接受此类作业。"],
  model: ["Take any of {model}", "接受任一型号：{model}"],
  modelDetail: ["There is room on other GPU models.", "其他型号的 GPU 有空位。"],
  package: ["Take package {package}", "改用套餐 {package}"],
  packageDetail: ["It has as many GPUs, and there is room for it.", "GPU 数量相同，并且有空位。"],
  time: ["Ask for {time} only", "将时间上限改为 {time}"],
  timeDetail: [
    "It could run on what is kept for another job, and must be done before that one starts.",
    "可使用为其他作业保留的资源，但须在其启动前完成。",
  ],
  elastic: ["Begin with {min_gpus} and grow to {max_gpus} GPUs", "从 {min_gpus} 个 GPU 开始，最多扩展到 {max_gpus} 个"],
  elasticDetail: [
    "As an elastic job it begins with what is free. Its program must go on with any number of GPUs.",
    "作为弹性作业先用空闲的 GPU；程序必须能以任意数量继续运行。",
  ],
  gpus: ["Ask for {gpus} {gpus|GPU|GPUs} per node", "每个节点改为 {gpus} 个 GPU"],
  gpusDetail: ["There is room for that.", "目前有足够的空位。"],
  nodes: ["Ask for {nodes} {nodes|node|nodes}", "改为 {nodes} 个节点"],
  nodesDetail: ["There is room on so many.", "目前有这么多空闲节点。"],
});

/** An earlier moment of the job. */
export const lookBack = defineTexts({
  title: ["Back in time", "回看"],
  about: [
    "Choose a time: the scheduler's journal shows why the job waited then.",
    "从调度日志查看作业在过去某一时刻为何等待：请选择时刻。",
  ],
  back: ["Close", "关闭"],
  now: ["now", "现在"],
  moment: ["Moment", "时刻"],
  exactly: ["Exact time", "精确时间"],
  then: ["At {at}", "{at} 时"],
  position: ["place {n} in its line", "队列中第 {n} 位"],
  notWaiting: ["It did not wait then.", "当时没有在等待。"],
  cycle: [
    "As of cycle {id} of the scheduler at {at}, with what was known until {until}.",
    "依据 {at} 的第 {id} 次调度，包含截至 {until} 的变化。",
  ],
  cycleUncertain: [
    "As of cycle {id} of the scheduler at {at}, with what was known until {until}; some later changes may be missing.",
    "依据 {at} 的第 {id} 次调度，包含截至 {until} 的变化；之后的部分变化可能未计入。",
  ],
});

/** Behind the sentence of a limit that is smaller than the job. */
export const never = [" It can never start under this limit.", "在此上限下，该作业无法启动。"] as const;
