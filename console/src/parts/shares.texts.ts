import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  notShared: ["It is not shared.", "未共享给任何人。"],
  add: ["Add a user or group", "添加用户或用户组"],
  shareOf: ["Share {n}", "第 {n} 项共享"],
  kindOf: ["User or group of share {n}", "第 {n} 项共享的对象类型"],
  nameOf: ["Name of share {n}", "第 {n} 项共享的名称"],
  modeOf: ["What share {n} may do", "第 {n} 项共享的权限"],
  ro: ["read", "只读"],
  rw: ["write", "读写"],
  remove: ["Remove {name}", "移除 {name}"],
  nameMissing: ["Whom?", "请填写名称"],
  twice: ["This name is given twice", "重复"],
});
