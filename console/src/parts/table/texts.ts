import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  menu: ["Columns, CSV and views of {name}", "{name}的列、CSV 和视图"],
  columns: ["Columns", "列"],
  allColumns: ["Show all columns", "显示所有列"],
  csv: ["Download as CSV", "下载 CSV"],
  views: ["Views", "视图"],
  copyLink: ["Copy a link to this view", "复制此视图的链接"],
  copied: [
    "The link was copied: it shows the same filters, order and columns.",
    "链接已复制：打开者会看到相同的筛选、排序和列。",
  ],
  saveView: ["Save this view …", "保存此视图…"],
  saveTitle: ["Save filters, order and columns as a view", "将筛选、排序和列保存为视图"],
  viewName: ["Name of the view", "视图名称"],
  nameTaken: ["There is a view of this name already.", "已有同名视图。"],
  saved: ["The view {name} was saved in this browser.", "视图 {name} 已保存在此浏览器中。"],
  removeView: ["Delete the view {name}", "删除视图 {name}"],
  removed: ["The view {name} was deleted.", "视图 {name} 已删除。"],
});
