import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  empty: ["This file is empty", "文件为空"],
  other: ["No preview of this type of file", "此类文件无法预览"],
  otherHint: ["Text, CSV, PNG, JPEG, GIF and WebP have one.", "可预览文本、CSV、PNG、JPEG、GIF 和 WebP。"],
  tooLarge: ["This image is too large for a preview", "图片过大，无法预览"],
  tooLargeHint: ["It has {size}; images up to {most} are shown.", "大小为 {size}，最大可显示 {most} 的图片。"],
  tooManyPixelsHint: [
    "It has {n} million pixels; images up to {most} million are shown.",
    "共 {n} 百万像素，最多可显示 {most} 百万像素的图片。",
  ],
  broken: ["The browser cannot draw this image", "浏览器无法显示此图片"],
  begin: ["The first {part} of {size}", "前 {part}（共 {size}）"],
  beginRows: ["The first {n} {n|row|rows}", "前 {n} 行"],
  content: ["Content of {name}", "{name} 的内容"],
  table: ["Table", "表格"],
  text: ["Text", "文本"],
  shownAs: ["Shown as", "显示方式"],
  previewFile: ["Preview of {name}", "预览 {name}"],
});
