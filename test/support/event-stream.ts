/** An event as a browser's EventSource dispatches it. */
export interface ReceivedEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Id that the client would resume from. */
  readonly lastEventId: string;
}

/** Reads server-sent events by the HTML standard. `onId` receives the last id after each block, with or without data. */
export async function* readEvents(
  body: ReadableStream<Uint8Array> | null,
  onId: (id: string) => void = () => {},
): AsyncGenerator<ReceivedEvent, void> {
  let buffer = '';
  let lastEventId = '';
  for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    buffer += chunk;
    const blocks = buffer.split('\n\n');
    buffer = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map<string, string>();
      for (const line of block.split('\n')) {
        const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        fields.set(name, value);
      }
      lastEventId = fields.get('id') ?? lastEventId;
      onId(lastEventId);
      const data = fields.get('data');
      if (data === undefined) continue;
      const type = fields.get('event') ?? 'message';
      yield { type, data: JSON.parse(data) as ReceivedEvent['data'], lastEventId };
    }
  }
}

export async function take(
  events: AsyncIterator<ReceivedEvent>,
  count: number,
): Promise<readonly ReceivedEvent[]> {
  const taken: ReceivedEvent[] = [];
  while (taken.length < count) {
    const { value, done } = (await events.next()) as IteratorResult<ReceivedEvent, undefined>;
    if (done) throw new Error(`the stream ended after ${taken.length} of ${count} events`);
    taken.push(value);
  }
  return taken;
}
