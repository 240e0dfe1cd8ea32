import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  configuration: ["Configuration", "配置"],
  hint: [
    "What this server runs with. It is read at start: change {file} and start it again.",
    "服务器当前使用的配置，在启动时读取：修改 {file} 后重启生效。",
  ],
  noFile: [
    "What this server runs with. There is no configuration file: start it with --config FILE to change something.",
    "服务器当前使用的配置。没有配置文件，可用 --config FILE 启动以修改。",
  ],
  onlyChanged: ["Only what differs from the defaults", "仅显示与默认值不同的项"],
  search: ["Find a setting", "查找配置项"],
  setting: ["Setting", "配置项"],
  value: ["Value", "值"],
  source: ["From", "来源"],
  isDefault: ["default", "默认"],
  allDefault: ["All settings have their defaults", "全部为默认值"],
  allDefaultHint: [
    "Nothing was set in a file, by a variable or on the command line.",
    "未通过配置文件、环境变量或命令行更改任何配置。",
  ],
});
