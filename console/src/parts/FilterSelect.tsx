import { Select } from "@mantine/core";

export interface FilterSelectProps {
  readonly label: string;
  /** The text that is shown while nothing is selected. */
  readonly everything: string;
  readonly options: readonly (string | { readonly value: string; readonly label: string })[];
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly width?: number;
}

/** One choice that narrows a list; an empty text is everything. */
export default function FilterSelect({ label, everything, options, value, onChange, width = 140 }: FilterSelectProps) {
  return (
    <Select
      size="xs"
      w={width}
      aria-label={label}
      placeholder={everything}
      data={[...options]}
      value={value === "" ? null : value}
      onChange={(name) => onChange(name ?? "")}
      searchable={options.length > 12}
      clearable
    />
  );
}
