import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  files: ["Files", "文件"],
  name: ["Name", "名称"],
  size: ["Size", "大小"],
  modified: ["Changed", "修改时间"],
  downloadFile: ["Download {name}", "下载 {name}"],
  leadsOut: ["leads out of this folder", "指向此文件夹之外"],
});
