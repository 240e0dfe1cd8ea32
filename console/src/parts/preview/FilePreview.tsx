/** The content of a file in a dialog: the beginning of a text, a CSV file as a table, an image. */
import { Button, Code, Group, Modal, ScrollArea, SegmentedControl, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Download, FileImage, FileQuestion, FileX } from "lucide-react";
import { useEffect, useState } from "react";

import { IMAGE_BYTES, read, TEXT_BYTES, type Content } from "@/parts/preview/content";
import { MOST_PIXELS } from "@/parts/preview/pixels";
import { isSheet, sheetOf } from "@/parts/preview/sheet";
import { texts } from "@/parts/preview/texts";
import { EmptyState } from "@/parts/EmptyState";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

interface FilePreviewProps {
  readonly name: string;
  readonly url: string;
  /** The list says so: there is nothing to ask for. */
  readonly isEmpty: boolean;
  readonly onClose: () => void;
}

const EMPTY: Content = { kind: "empty", size: 0 };
const TALL = "min(70vh, 720px)";

export default function FilePreview({ name, url, isEmpty, onClose }: FilePreviewProps) {
  const c = useTexts(common);
  const { data, error, refetch } = useQuery({
    queryKey: ["preview", url],
    queryFn: ({ signal }) => (isEmpty ? EMPTY : read(url, signal)),
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
  });
  useFocusReturn();
  return (
    <Modal opened onClose={onClose} title={name} size="xl" closeButtonProps={{ "aria-label": c("close") }}>
      <Stack gap="sm" aria-busy={data === undefined && error === null}>
        {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
        {data === undefined && error === null && <Skeleton h={240} aria-label={c("loading")} />}
        {data !== undefined && <Shown name={name} content={data} />}
        <Group justify="flex-end">
          <Button variant="default" component="a" href={url} download leftSection={<Download size={14} />}>
            {c("download")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** The dialog is mounted open, so that it cannot do this itself. */
function useFocusReturn(): void {
  const [opener] = useState(() => document.activeElement);
  useEffect(() => () => (opener instanceof HTMLElement ? opener.focus() : undefined), [opener]);
}

function Shown({ name, content }: { name: string; content: Content }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (content.kind === "text") return <TextOf name={name} {...content} />;
  if (content.kind === "image") return <ImageOf name={name} {...content} />;
  if (content.kind === "empty") return <EmptyState icon={FileX} title={t("empty")} />;
  if (content.kind === "other") return <EmptyState icon={FileQuestion} title={t("other")} hint={t("otherHint")} />;
  if (content.kind === "tooManyPixels") {
    const millions = { n: format.number(Math.round(content.pixels / 1e6)), most: format.number(MOST_PIXELS / 1e6) };
    return <EmptyState icon={FileImage} title={t("tooLarge")} hint={t("tooManyPixelsHint", millions)} />;
  }
  const sizes = { size: format.bytes(content.size), most: format.bytes(IMAGE_BYTES) };
  return <EmptyState icon={FileImage} title={t("tooLarge")} hint={t("tooLargeHint", sizes)} />;
}

function TextOf({ name, text, size, isCut }: { name: string; text: string; size: number; isCut: boolean }) {
  const t = useTexts(texts);
  const format = useFormat();
  const [shownAs, setShownAs] = useState(isSheet(name) ? "table" : "text");
  const length = isCut ? t("begin", { part: format.bytes(TEXT_BYTES), size: format.bytes(size) }) : format.bytes(size);
  return (
    <>
      <Group justify="space-between">
        <Text size="xs" c="dimmed">
          {length}
        </Text>
        {isSheet(name) && (
          <SegmentedControl
            size="xs"
            aria-label={t("shownAs")}
            data={(["table", "text"] as const).map((value) => ({ value, label: t(value) }))}
            value={shownAs}
            onChange={setShownAs}
          />
        )}
      </Group>
      {shownAs === "table" ? (
        <SheetOf name={name} text={text} isCut={isCut} />
      ) : (
        <Code
          block
          tabIndex={0}
          role="region"
          aria-label={t("content", { name })}
          style={{ maxHeight: TALL, overflow: "auto", whiteSpace: "pre" }}
        >
          {text}
        </Code>
      )}
    </>
  );
}

function SheetOf({ name, text, isCut }: { name: string; text: string; isCut: boolean }) {
  const t = useTexts(texts);
  const sheet = sheetOf(text, isCut);
  return (
    <>
      <ScrollArea.Autosize
        mah={TALL}
        viewportProps={{ tabIndex: 0, role: "region", "aria-label": t("content", { name }) }}
      >
        <Table striped withTableBorder withColumnBorders fz="xs" aria-label={name}>
          <Table.Thead>
            <Table.Tr>
              {sheet.head.map((cell, at) => (
                <Table.Th key={at} scope="col">
                  {cell}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {sheet.rows.map((row, at) => (
              <Table.Tr key={at}>
                {row.map((cell, column) => (
                  <Table.Td key={column} style={{ whiteSpace: "nowrap" }}>
                    {cell}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
      {sheet.isCut && (
        <Text size="xs" c="dimmed">
          {t("beginRows", { n: sheet.rows.length })}
        </Text>
      )}
    </>
  );
}

function ImageOf({ name, image, size }: { name: string; image: Blob; size: number }) {
  const t = useTexts(texts);
  const format = useFormat();
  const [url, setUrl] = useState<string>();
  const [isBroken, setIsBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(image);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [image]);
  if (isBroken) return <EmptyState icon={FileX} title={t("broken")} />;
  return (
    <>
      <Text size="xs" c="dimmed">
        {format.bytes(size)}
      </Text>
      {url !== undefined && (
        <img
          src={url}
          alt={t("previewFile", { name })}
          onError={() => setIsBroken(true)}
          style={{ maxWidth: "100%", maxHeight: TALL, objectFit: "contain", alignSelf: "center" }}
        />
      )}
    </>
  );
}
