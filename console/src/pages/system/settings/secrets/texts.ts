import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  secrets: ["Secrets", "密钥"],
  secretsHint: [
    "Jobs get them as environment variables or files. Values are stored encrypted and never shown again.",
    "作业以环境变量或文件的形式获得密钥。其值加密保存，不会再次显示。",
  ],
  newSecret: ["New secret", "新建密钥"],
  replace: ["Replace {name}", "替换 {name}"],
  noSecrets: ["No secret yet", "尚无密钥"],
  noSecretsHint: [
    "Tokens and keys that a program needs, such as HF_TOKEN. In a job: --secret HF_TOKEN, or the step Tools.",
    "程序所需的令牌和密钥，例如 HF_TOKEN。在作业中使用：--secret HF_TOKEN，或“工具”步骤。",
  ],
  name: ["Name", "名称"],
  nameHint: [
    "Such as HF_TOKEN: up to 63 letters, digits, '.', '_' and '-'",
    "例如 HF_TOKEN：最多 63 个字母、数字、“.”、“_”和“-”",
  ],
  badName: [
    "Up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit",
    "最多 63 个字母、数字、“.”、“_”和“-”，以字母或数字开头",
  ],
  value: ["Value", "值"],
  valueHint: [
    "One line; corral secret set NAME --file PATH stores more. Jobs that start later get it; it is never shown again.",
    "单行；多行内容请使用 corral secret set NAME --file PATH。之后启动的作业将获得该值，且不会再次显示。",
  ],
  owner: ["For", "归属"],
  ownerHint: ["All members of a group can use its secrets in their jobs.", "用户组的所有成员均可在作业中使用其密钥。"],
  mine: ["My jobs", "我的作业"],
  ofGroup: ["Group {name}", "用户组 {name}"],
  setBy: ["Set by", "设置者"],
  setAt: ["Set", "设置时间"],
  stored: ["Secret {name} is stored.", "密钥 {name} 已保存。"],
  delete: ["Delete {name}", "删除 {name}"],
  deleteTitle: ["Delete secret {name}?", "删除密钥 {name}？"],
  deleteText: [
    "Jobs that run keep it. Jobs that name it and start later fail.",
    "运行中的作业仍保留该密钥；引用它且之后启动的作业将失败。",
  ],
  deleteAction: ["Delete the secret", "删除密钥"],
  deleted: ["Secret {name} is deleted.", "密钥 {name} 已删除。"],
  ofOperators: ["Only operators change the secrets of a group.", "仅管理员可更改用户组的密钥。"],
});
