/** Addresses of channels, made from what people know about their service. They hold secrets: never shown, never remembered. */

export const KINDS = ["mail", "slack", "teams", "discord", "telegram", "webhook", "other"] as const;
export type Kind = (typeof KINDS)[number];

export interface Parts {
  readonly host: string;
  readonly port: string;
  readonly account: string;
  readonly password: string;
  readonly sender: string;
  readonly receivers: string;
  readonly encrypted: boolean;
  readonly hook: string;
  readonly botToken: string;
  readonly chat: string;
  readonly apprise: string;
}

export const NO_PARTS: Parts = {
  host: "",
  port: "",
  account: "",
  password: "",
  sender: "",
  receivers: "",
  encrypted: true,
  hook: "",
  botToken: "",
  chat: "",
  apprise: "",
};

/** The parts that a kind requires. */
export const NEEDED: Readonly<Record<Kind, readonly (keyof Parts)[]>> = {
  mail: ["host", "receivers"],
  slack: ["hook"],
  teams: ["hook"],
  discord: ["hook"],
  telegram: ["botToken", "chat"],
  webhook: ["hook"],
  other: ["apprise"],
};

export function addressOf(kind: Kind, parts: Parts): string {
  switch (kind) {
    case "mail":
      return mail(parts);
    case "telegram":
      return `tgram://${parts.botToken.trim()}/${encodeURIComponent(parts.chat.trim())}`;
    case "webhook":
      return parts.hook.trim().replace(/^http(s?):/, "json$1:");
    case "other":
      return parts.apprise.trim();
    default:
      // Slack, Teams and Discord: their own webhook addresses are understood as they are.
      return parts.hook.trim();
  }
}

function mail(parts: Parts): string {
  const account =
    parts.account === "" ? "" : `${encodeURIComponent(parts.account)}:${encodeURIComponent(parts.password)}@`;
  const port = parts.port.trim() === "" ? "" : `:${parts.port.trim()}`;
  const query = new URLSearchParams({ to: parts.receivers.replace(/\s+/g, "") });
  if (parts.sender !== "") query.set("from", parts.sender.trim());
  if (!parts.encrypted) query.set("mode", "insecure");
  return `${parts.encrypted ? "mailtos" : "mailto"}://${account}${parts.host.trim()}${port}?${query.toString()}`;
}

export function isHook(text: string): boolean {
  return /^https?:\/\/[^\s/]+/.test(text.trim());
}
