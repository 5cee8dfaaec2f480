import { randomUUID } from 'node:crypto';
import { version } from '../../app/process.ts';
import { formatDuration } from '../../domain/options.ts';
import type { Receiver } from '../../domain/receiver.ts';
import { closest, didYouMean, quoteId } from '../../domain/suggest.ts';
import { isoTime } from '../../rows/fields.ts';
import { type Context, type Define, UsageError } from '../command.ts';
import { configOption, type Options } from '../options.ts';
import { loadConfiguration } from '../query.ts';

const HELP = `
Sends one message that says it is a test, with the addresses and secrets of this moment, and does not repeat it.
Prints what came back; if the receiver did not take it, also what to do, and exits 1. Needs no running daemon.

Examples:
  evalwatch notify test search-chat
  evalwatch notify test on-call --config /etc/evalwatch/evalwatch.yaml`;

export const defineNotify: Define = (command, run) => {
  command
    .command('test')
    .description('Send a test message to a receiver of the configuration')
    .argument('[name]', 'name of the receiver, under notify; the only one needs none')
    .addOption(configOption())
    .addHelpText('after', HELP)
    .action(run(test));
};

async function test(context: Context, name: string | undefined, options: Options): Promise<number> {
  const { clock, stdout, warn } = context;
  const { notify, service } = await loadConfiguration(options.config, context.env, 'without keys');
  const receiver = find(name, notify);
  const { send } = await import('../../notify/send.ts');
  const message = {
    schema: 1,
    id: randomUUID(),
    type: 'test',
    timestamp: isoTime(clock.now()),
    data: { receiver: receiver.name },
  } as const;
  const { signal } = new AbortController();
  const delivery = await send(receiver, message, { network: service, version, clock, signal });
  if (!delivery.ok) {
    const { reason, advice, retryAfterMs } = delivery;
    const wait = retryAfterMs && `It asks to wait for ${formatDuration(retryAfterMs)}`;
    const sentences = [`${receiver.name}: ${reason}`, wait, advice].filter(Boolean);
    warn(`error: ${sentences.join('. ')}`);
    return 1;
  }
  if (delivery.doubt !== undefined) warn(`warning: ${delivery.doubt}`);
  const taken =
    delivery.statusCode === undefined
      ? `the mail server has taken the test message to ${receiver.name}`
      : `${receiver.name} answered ${delivery.statusCode} to the test message`;
  await stdout.write(`OK: ${taken}\n`);
  return 0;
}

/** @throws {UsageError} that lists the receivers */
function find(name: string | undefined, receivers: readonly Receiver[]): Receiver {
  const [only] = receivers.length === 1 ? receivers : [];
  const found = name === undefined ? only : receivers.find((each) => each.name === name);
  if (found !== undefined) return found;
  if (receivers.length === 0) {
    throw new UsageError('the configuration has no receivers: add one under notify');
  }
  const names = receivers.map((each) => each.name);
  const listed = names.join(', ');
  if (name === undefined) throw new UsageError(`name a receiver: ${listed}`);
  const suggestion = didYouMean(closest(name, names)) || `; the receivers are ${listed}`;
  throw new UsageError(`unknown receiver ${quoteId(name)}${suggestion}`);
}
