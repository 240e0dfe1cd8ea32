import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  resultTitle: ["{done} of {n} deleted", "已删除 {done} / {n}"],
  item: ["Name", "名称"],
  result: ["Result", "结果"],
  deleted: ["deleted", "已删除"],
  allDeleted: ["{names}: deleted", "已删除：{names}"],
});
