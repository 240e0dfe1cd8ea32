import { Badge, Text, Tooltip } from "@mantine/core";
import { TriangleAlert } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import type { Kind, Package } from "@/pages/fleet/packages/draft";
import { askedBy, fitOf, type Node } from "@/pages/fleet/packages/fit";
import { texts } from "@/pages/fleet/packages/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { common, kinds as kindTexts } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Flavor = Schema<"FlavorView">;

interface Facts {
  /** The packages that can be used now for the kind, with their free counts. */
  readonly offers: readonly Package[] | undefined;
  readonly kind: Kind;
  readonly flavors: readonly Flavor[] | undefined;
  readonly nodes: readonly Node[] | undefined;
}

export function usePackageColumns({ offers, kind, flavors, nodes }: Facts): readonly Column<Package>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const k = useTexts(kindTexts);
  const format = useFormat();
  return useMemo(() => {
    const offerOf = new Map(offers?.map((offer) => [offer.name, offer]));
    const flavorOf = new Map(flavors?.map((flavor) => [flavor.name, flavor]));
    return [
      {
        key: "name",
        title: c("name"),
        sort: (one) => one.name,
        render: (one) => (
          <>
            {one.name}
            {one.description !== "" && <Faint>{one.description}</Faint>}
          </>
        ),
      },
      {
        key: "gpus",
        title: c("gpus"),
        numeric: true,
        sort: (one) => one.gpus,
        render: (one) => format.number(one.gpus),
      },
      {
        key: "cpus",
        title: c("cpus"),
        numeric: true,
        wide: true,
        sort: (one) => one.cpus,
        render: (one) => format.number(one.cpus),
      },
      {
        key: "memory",
        title: c("memory"),
        numeric: true,
        wide: true,
        sort: (one) => one.memory_bytes,
        render: (one) => format.bytes(one.memory_bytes),
      },
      {
        key: "flavor",
        title: t("flavor"),
        wide: true,
        sort: (one) => one.flavor,
        render: (one) => (
          <>
            {one.flavor ?? t("anyHardware")}{" "}
            {one.rdma && (
              <Badge variant="light" tt="none">
                {t("rdma")}
              </Badge>
            )}
            {one.models.length > 0 && <Faint>{one.models.join(" / ")}</Faint>}
          </>
        ),
      },
      {
        key: "kinds",
        title: t("kinds"),
        wide: true,
        render: (one) => (one.kinds.length === 0 ? t("everyKind") : one.kinds.map((each) => k(each)).join(", ")),
      },
      {
        key: "fits",
        title: t("fits"),
        numeric: true,
        wide: true,
        render: (one) => (
          <Fits one={one} flavor={one.flavor === null ? undefined : flavorOf.get(one.flavor)} nodes={nodes} />
        ),
      },
      {
        key: "free",
        title: t("free", { kind: k(kind) }),
        numeric: true,
        sort: (one) => offerOf.get(one.name)?.free_count ?? null,
        render: (one) => (
          <Free one={one} kind={kind} offer={offers === undefined ? undefined : (offerOf.get(one.name) ?? null)} />
        ),
      },
    ];
  }, [t, c, k, format, offers, kind, flavors, nodes]);
}

function Fits({
  one,
  flavor,
  nodes,
}: {
  one: Package;
  flavor: Flavor | undefined;
  nodes: readonly Node[] | undefined;
}) {
  const t = useTexts(texts);
  if (nodes === undefined || (one.flavor !== null && flavor === undefined)) return <>–</>;
  const fit = fitOf(
    askedBy({ gpus: one.gpus, cpus: one.cpus, memory: one.memory_bytes, rdma: one.rdma }, flavor),
    nodes,
  );
  if (fit.able.length > 0) return <>{t("fitsOf", { n: fit.able.length, all: fit.all })}</>;
  return (
    <Tooltip label={t("couldNever")}>
      <Badge variant="default" tt="none" leftSection={<TriangleAlert size={12} aria-hidden />}>
        {t("fitsNone")}
      </Badge>
    </Tooltip>
  );
}

/** `offer` is undefined while it is not known, null where a job of it would not be taken. */
function Free({ one, kind, offer }: { one: Package; kind: Kind; offer: Package | null | undefined }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (offer === undefined) return <>–</>;
  if (one.kinds.length > 0 && !one.kinds.includes(kind))
    return (
      <Text size="xs" c="dimmed" span>
        {t("notOffered")}
      </Text>
    );
  if (offer === null) {
    return (
      <Tooltip label={t("notReachableHint")}>
        <Text size="xs" c="dimmed" span>
          {t("notReachable")}
        </Text>
      </Tooltip>
    );
  }
  const wait = offer.expected_wait_seconds;
  if ((offer.free_count ?? 0) > 0) return <>{t("freeNow", { n: format.number(offer.free_count ?? 0) })}</>;
  return (
    <>
      {t("freeNone")}
      <Faint>
        {wait === null || wait === undefined ? t("waitUnknown") : t("waitAbout", { time: format.duration(wait) })}
      </Faint>
    </>
  );
}
