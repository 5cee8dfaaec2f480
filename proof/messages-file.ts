import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Cause, causeOf } from '../src/domain/cause.ts';
import type { ErrorInfo } from '../src/domain/failure.ts';

interface Message {
  readonly template: string;
  readonly error_id: string | null;
  readonly error_msg: string | null;
}

/** Maximum batch that is grouped and timed in one go. */
const MAX_BATCH = 512;
const MAX_BATCH_CHARACTERS = 1024 * 1024;
/** Number of messages that are grouped once before they are timed, so that the code is compiled. */
const WARM_UP = 4096;

/** Counts messages by template and cause. Memory grows with the number of templates and causes, not of messages. */
class Grouping {
  readonly #templates = new Map<string, Map<string, number>>();
  readonly #groups = new Map<string, number>();

  add(template: string, cause: string): void {
    const causes = this.#templates.get(template) ?? new Map<string, number>();
    this.#templates.set(template, causes);
    causes.set(cause, (causes.get(cause) ?? 0) + 1);
    this.#groups.set(cause, (this.#groups.get(cause) ?? 0) + 1);
  }

  /** The accuracy is the share of the messages whose group holds exactly the messages of their template. */
  get score(): { readonly accuracy: number; readonly groups: number; readonly templates: number } {
    let messages = 0;
    let right = 0;
    for (const causes of this.#templates.values()) {
      for (const [cause, count] of causes) {
        messages += count;
        if (causes.size === 1 && this.#groups.get(cause) === count) right += count;
      }
    }
    const accuracy = messages === 0 ? 0 : right / messages;
    return { accuracy, groups: this.#groups.size, templates: this.#templates.size };
  }
}

/**
 * Groups the messages of a file, one JSON object a line, and returns a line with the score. The faster of two rounds counts,
 * as the machine may do other work. With `out`, writes the cause and the shape of each line there. Reads and writes as a
 * stream.
 * @throws {Error} if the file has no message, or if a line is none, with its number
 */
export async function groupFile(file: string, out: string | undefined): Promise<string> {
  const grouping = new Grouping();
  let messages = 0;
  let micros = 0;

  async function* causes(): AsyncGenerator<string> {
    for await (const batch of batchesOf(messagesOf(file))) {
      if (messages < WARM_UP) batch.forEach(causeOf);
      const { found, micros: taken } = timedCauses(batch);
      micros += Math.min(taken, timedCauses(batch).micros);
      messages += batch.length;
      for (const [index, { id }] of found.entries()) grouping.add(batch[index]?.template ?? '', id);
      const lines = found.map(({ id, shape }) => JSON.stringify({ cause: id, shape }));
      yield `${lines.join('\n')}\n`;
    }
  }

  if (out === undefined) for await (const _ of causes());
  else await pipeline(causes(), createWriteStream(out));
  if (messages === 0) throw new Error('it has no messages');
  const { accuracy, groups, templates } = grouping.score;
  return (
    `grouping accuracy ${accuracy.toFixed(4)}, ${groups} groups, ${templates} templates, ` +
    `${(micros / messages).toFixed(1)} µs a message`
  );
}

/** Groups messages, and measures the CPU time in µs. */
function timedCauses(messages: readonly ErrorInfo[]): {
  readonly found: readonly Cause[];
  readonly micros: number;
} {
  const begin = process.threadCpuUsage();
  const found = messages.map(causeOf);
  const { user, system } = process.threadCpuUsage(begin);
  return { found, micros: user + system };
}

async function* batchesOf(messages: AsyncIterable<Message>): AsyncGenerator<readonly Message[]> {
  let batch: Message[] = [];
  let characters = 0;
  for await (const message of messages) {
    batch.push(message);
    characters += message.error_msg?.length ?? 0;
    if (batch.length < MAX_BATCH && characters < MAX_BATCH_CHARACTERS) continue;
    yield batch;
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield batch;
}

async function* messagesOf(file: string): AsyncGenerator<Message> {
  let number = 0;
  for await (const line of linesOf(file)) {
    number += 1;
    if (line.trim() === '') continue;
    try {
      yield readMessage(line);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`line ${number}: ${reason}`, { cause: error });
    }
  }
}

/** Splits at line feeds only: JSON may have other ends of lines within its strings. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let begun: string[] = [];
  for await (const chunk of createReadStream(file, 'utf8')) {
    const [first = '', ...others] = String(chunk).split('\n');
    begun.push(first);
    for (const other of others) {
      yield begun.join('');
      begun = [other];
    }
  }
  yield begun.join('');
}

function readMessage(line: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(line.replace(/^\ufeff/, ''));
  } catch {
    throw new Error('not valid JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error('not a JSON object');
  }
  const { template, error_id = null, error_msg = null } = value as Record<string, unknown>;
  if (typeof template !== 'string' && typeof template !== 'number') {
    throw new Error('"template" must be a string or a number');
  }
  return {
    template: JSON.stringify(template),
    error_id: textOrNull('error_id', error_id),
    error_msg: textOrNull('error_msg', error_msg),
  };
}

function textOrNull(name: string, value: unknown): string | null {
  if (value === null || typeof value === 'string') return value;
  throw new Error(`"${name}" must be a string or null`);
}
