import { Box, Text } from "@mantine/core";
import { Fragment, type ReactNode } from "react";

import classes from "@/parts/FactList.module.css";

export type Fact = readonly [name: string, value: ReactNode];

/** The properties of an object by name; those without a value are left out. */
export function FactList({ facts }: { facts: readonly Fact[] }) {
  return (
    <Box component="dl" className={classes.facts}>
      {facts.filter(isSaid).map(([name, value]) => (
        <Fragment key={name}>
          <Text component="dt" size="sm" c="dimmed">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} style={{ overflowWrap: "anywhere" }}>
            {value}
          </Text>
        </Fragment>
      ))}
    </Box>
  );
}

function isSaid([, value]: Fact): boolean {
  return value !== null && value !== undefined && value !== false && value !== "";
}
