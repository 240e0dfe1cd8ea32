/** A link to the page of a subject. */
import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";

/** By what the API calls the scope of an alert or the noun of an event. */
const PAGE_OF: Readonly<Record<string, (name: string) => string>> = {
  gpu: (name) => `/gpus/${name}`,
  node: (name) => `/nodes/${encodeURIComponent(name)}`,
  job: (name) => `/jobs/${encodeURIComponent(name)}`,
  queue: (name) => `/queues?open=${encodeURIComponent(name)}`,
  pool: (name) => `/pools?open=${encodeURIComponent(name)}`,
  user: (name) => `/users?open=${encodeURIComponent(name)}`,
  volume: (name) => `/volumes/${encodeURIComponent(name)}`,
  dataset: (name) => `/datasets/${encodeURIComponent(name)}`,
  group: (name) => `/groups?open=${encodeURIComponent(name)}`,
};

export function SubjectLink({ scope, name, label = name }: { scope: string; name: string; label?: string }) {
  const page = PAGE_OF[scope]?.(name);
  if (page === undefined || name === "") return <span>{label}</span>;
  const [to = page, search] = page.split("?");
  const open = search === undefined ? {} : { search: { open: name } };
  return (
    <Anchor size="sm" style={{ whiteSpace: "nowrap" }} renderRoot={(props) => <Link to={to} {...open} {...props} />}>
      {label}
    </Anchor>
  );
}
