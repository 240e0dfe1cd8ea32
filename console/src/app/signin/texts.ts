import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  title: ["Sign in", "登录"],
  tagline: ["Shared, fair and observable GPUs", "共享、公平、可观测的 GPU"],
  user: ["User", "用户名"],
  password: ["Password", "密码"],
  signIn: ["Sign in", "登录"],
  account: ["Account", "账号类型"],
  local: ["Local account", "本地账号"],
  or: ["or", "或"],
  with: ["Continue with {name}", "使用 {name} 登录"],
  terminal: ["From a terminal: corral login --user NAME", "在终端中：corral login --user 用户名"],
  noConnection: ["The server does not answer", "服务器没有响应"],
  noConnectionHint: [
    "It may be starting or restarting. This page tries again by itself.",
    "服务器可能正在启动或重启，页面会自动重试。",
  ],
  changeTitle: ["Choose a password of your own", "请设置自己的密码"],
  changeHint: ["The present one was made for you and works only until now.", "当前密码是系统生成的一次性密码。"],
  present: ["Present password", "当前密码"],
  next: ["New password", "新密码"],
  again: ["New password again", "再次输入新密码"],
  differ: ["The two are not the same.", "两次输入不一致。"],
  change: ["Change and go on", "修改并继续"],
});
