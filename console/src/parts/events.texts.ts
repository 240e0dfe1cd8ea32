import { defineTexts } from "@/texts/texts";

/** What happens to GPUs and nodes, by the names that the audit log gives it. */
export const texts = defineTexts({
  none: ["Nothing has happened to it yet.", "尚无事件。"],
  "gpu.healthy": ["became healthy", "恢复健康"],
  "gpu.suspect": ["became suspect", "变为可疑"],
  "gpu.failed": ["failed", "故障"],
  "gpu.xid": ["driver error (XID)", "驱动错误（XID）"],
  "gpu.health-reset": ["health was reset", "健康状态已重置"],
  "gpu.self-test-started": ["self-test began", "开始自检"],
  "gpu.self-test-passed": ["self-test passed", "自检通过"],
  "gpu.self-test-abandoned": ["self-test could not be run", "自检未能执行"],
  "gpu.moved": ["moved to another pool", "移至其他资源池"],
  "node.added": ["appeared", "已加入"],
  "node.up": ["is up again", "恢复在线"],
  "node.down": ["is down", "离线"],
  "node.cordoned": ["was cordoned", "已隔离"],
  "node.uncordoned": ["was uncordoned", "已解除隔离"],
  "node.draining": ["is being drained", "开始排空"],
  "node.drain-planned": ["has a time by which it must be empty", "已设定清空时间"],
  "node.drained": ["is drained: no jobs are left", "已排空：没有剩余作业"],
  "node.removed": ["was removed", "已移除"],
});
