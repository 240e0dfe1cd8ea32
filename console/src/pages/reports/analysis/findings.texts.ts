import { defineTexts } from "@/texts/texts";

/** The numbers behind a finding, by the server's names. */
export const evidence = defineTexts({
  gpus: ["GPUs", "GPU 数"],
  used_gpus: ["GPUs used", "实际使用 GPU"],
  proposed_gpus: ["proposed GPUs", "建议 GPU 数"],
  nodes: ["nodes", "节点数"],
  utilization: ["utilisation", "利用率"],
  window_seconds: ["measured over", "测量时长"],
  idle_gpu_hours: ["idle GPU-hours", "空闲 GPU 时"],
  unused_gpu_hours: ["unused GPU-hours", "未用 GPU 时"],
  gpu_hours: ["GPU-hours", "GPU 时"],
  memory_peak_bytes: ["memory at most", "显存峰值"],
  memory_part: ["part of the memory", "显存占比"],
  user: ["user", "用户"],
  queue: ["queue", "队列"],
  model: ["model", "型号"],
  pool: ["pool", "资源池"],
  node: ["node", "节点"],
  free_gpus: ["free GPUs", "空闲 GPU"],
  nodes_with_free_gpus: ["nodes with free GPUs", "有空闲 GPU 的节点"],
  most_free_on_one_node: ["most free on one node", "单节点最多空闲"],
  wanted_gpus: ["GPUs wanted on one node", "需要的单节点 GPU"],
  unusable_gpus: ["free GPUs of no use", "无法利用的空闲 GPU"],
  moves: ["moves that would help", "可行的移动"],
  freed_nodes: ["nodes freed by them", "可腾出的节点"],
  waiting_job: ["waiting job", "等待中的作业"],
  temperature_celsius: ["mean temperature", "平均温度"],
  threshold_celsius: ["limit", "上限"],
  neighbours_celsius: ["GPUs beside it", "相邻 GPU"],
  waiting_gpus: ["GPUs waited for", "等待的 GPU"],
  waiting_jobs: ["waiting jobs", "等待中的作业数"],
  oldest_wait_seconds: ["longest wait", "最长等待"],
  p90_wait_seconds: ["nine in ten waited up to", "九成等待不超过"],
  others_p90_wait_seconds: ["in the other queues", "其他队列"],
  share_of_gpu_hours: ["share of all GPU-hours", "GPU 时占比"],
  share_of_weight: ["share of the weights", "权重占比"],
  from_pool: ["from pool", "来源资源池"],
  from_pool_gpus: ["GPUs there", "来源 GPU 数"],
  from_pool_free_gpus: ["free there", "来源空闲 GPU"],
  from_pool_mean_held_gpus: ["held there on average", "来源平均占用"],
  to_pool: ["to pool", "目标资源池"],
  to_pool_gpus: ["GPUs in that pool", "目标 GPU 数"],
  move_gpus: ["GPUs to move", "建议移动 GPU"],
});

/** Findings in whole sentences, from the numbers. */
export const sentences = defineTexts({
  "idle-allocation-title": ["Job {subject} leaves its GPUs idle", "作业 {subject} 的 GPU 处于空闲"],
  "idle-allocation-text": [
    "It has used {gpus} {gpus|GPU|GPUs} by {utilization} in the last {window_seconds}: {idle_gpu_hours} idle GPU-hours.",
    "最近 {window_seconds} 内，其 {gpus} 个 GPU 的利用率为 {utilization}，已空闲 {idle_gpu_hours} GPU 时。",
  ],
  "idle-allocation-proposal": [
    "Ask {user} whether it is still needed; if not: corral stop {subject}.",
    "请向 {user} 确认是否仍需要；如不需要：corral stop {subject}。",
  ],
  "low-utilization-title": ["Job {subject} uses its GPUs little", "作业 {subject} 的 GPU 利用率低"],
  "low-utilization-text": [
    "It was measured for {gpu_hours} GPU-hours: utilisation {utilization}, {unused_gpu_hours} GPU-hours unused.",
    "已测量 {gpu_hours} GPU 时：利用率 {utilization}，未使用 {unused_gpu_hours} GPU 时。",
  ],
  "low-utilization-proposal": [
    "Look at its chart for what it waits for: loading data, the network, or one process that works alone.",
    "请查看其图表，确认是在等待数据加载、网络，还是只有一个进程在工作。",
  ],
  "oversized-request-title": ["Job {subject} asked for more than it used", "作业 {subject} 申请过大"],
  "oversized-request-text": [
    "It held {gpus} {gpus|GPU|GPUs}; {unused_gpu_hours} GPU-hours were unused.",
    "占用 {gpus} 个 GPU，其中 {unused_gpu_hours} GPU 时未被使用。",
  ],
  "oversized-request-proposal": ["{proposed_gpus} per node would do.", "每节点 {proposed_gpus} 个 GPU 即可满足。"],
  "fragmentation-title": ["{free_gpus} free GPUs are scattered: {subject}", "{subject}：{free_gpus} 个空闲 GPU 分散"],
  "fragmentation-text": [
    "{free_gpus} GPUs are free on {nodes_with_free_gpus} nodes, at most {most_free_on_one_node} on one; {wanted_gpus} are wanted on one node.",
    "{nodes_with_free_gpus} 个节点上共有 {free_gpus} 个空闲 GPU，单个节点最多 {most_free_on_one_node} 个，而作业需要单节点 {wanted_gpus} 个。",
  ],
  "fragmentation-proposal": [
    "{moves} {moves|move|moves} would free {freed_nodes} {freed_nodes|node|nodes}. Queues that fill nodes one after another keep free GPUs together.",
    "通过 {moves} 次移动可腾出 {freed_nodes} 个节点。采用 pack 放置策略的队列可使空闲 GPU 保持集中。",
  ],
  "fragmentation-pack": [
    "No small set of moves would help. Queues that fill nodes one after another keep free GPUs together: corral queue edit NAME --placement pack.",
    "少量移动无法改善。采用 pack 放置策略的队列可使空闲 GPU 保持集中：corral queue edit NAME --placement pack。",
  ],
  "hot-gpu-title": ["GPU {subject} is {temperature_celsius} hot", "GPU {subject} 温度为 {temperature_celsius}"],
  "hot-gpu-text": [
    "Its mean temperature was {temperature_celsius}; the limit is {threshold_celsius}.",
    "最近平均温度为 {temperature_celsius}（上限 {threshold_celsius}）。",
  ],
  "hot-gpu-proposal": [
    "Look at the cooling of {node}; until then: corral nodes drain {node}.",
    "请检查节点 {node} 的散热；在此之前可排空该节点：corral nodes drain {node}。",
  ],
  "pool-balance-title": [
    "Pool {to_pool} lacks GPUs that pool {from_pool} does not use",
    "资源池 {to_pool} 缺少 GPU，而 {from_pool} 有空闲",
  ],
  "pool-balance-text": [
    "Jobs in pool {to_pool} wait for {waiting_gpus} {model}, the longest for {oldest_wait_seconds}; {from_pool_free_gpus} of {from_pool_gpus} are free in pool {from_pool}.",
    "资源池 {to_pool} 的作业在等待 {waiting_gpus} 个 {model}，最长已等待 {oldest_wait_seconds}；资源池 {from_pool} 的 {from_pool_gpus} 个中有 {from_pool_free_gpus} 个空闲。",
  ],
  "pool-balance-proposal": [
    "Move {move_gpus} {move_gpus|GPU|GPUs} from {from_pool} to {to_pool}.",
    "建议将 {move_gpus} 个 GPU 从 {from_pool} 移到 {to_pool}。",
  ],
  "starving-queue-title": ["Jobs in queue {subject} wait too long", "队列 {subject} 的作业等待过久"],
  "starving-queue-text": [
    "{waiting_jobs} {waiting_jobs|job waits|jobs wait}, the longest for {oldest_wait_seconds}. Nine of ten waited up to {p90_wait_seconds}.",
    "{waiting_jobs} 个作业在等待，最长 {oldest_wait_seconds}；九成等待不超过 {p90_wait_seconds}。该队列获得 {share_of_gpu_hours} 的 GPU 时。",
  ],
  "starving-queue-proposal": [
    "Give the queue guaranteed GPUs or more weight: corral queue edit {subject} --guaranteed-gpus N.",
    "可为队列提供保障 GPU 或更高权重：corral queue edit {subject} --guaranteed-gpus N。",
  ],
});
