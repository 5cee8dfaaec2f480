import { pathToFileURL } from 'node:url';
import type { Cause } from '../src/domain/cause.ts';
import type { ErrorInfo } from '../src/domain/failure.ts';
import { HOSTILE_TEXTS } from './causes/hostile.ts';
import { MESSAGE_SETS, messagesOf, showsUserText } from './causes/messages.ts';
import { timedCauses } from './causes/messages-file.ts';
import { Grouping } from './causes/score.ts';
import { type Row, SOURCE } from './row.ts';

type CauseOf = (errorInfo: ErrorInfo) => Cause;

const MIN_F1 = 0.7;
const MAX_GROUPS_A_TEMPLATE = 1.5;
const MAX_USER_TEXT = 0.05;
const MAX_MICROS = 30;
const MAX_HOSTILE_MS = 10;
const MAX_SHAPE = 200;
/** Calls of a hostile text, and rounds of all messages; the fastest counts. */
const TRIES = 5;
const ROUNDS = 4;
/** Patterns that no shape may contain. */
const FORBIDDEN: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['a control, bidi or invisible character', /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u],
  ['an address', /\b\w+@\w+\.\w+|\b\d{1,3}(?:\.\d{1,3}){3}\b|:\/\/\w/],
  ['a key', /sk-\w/],
];

/** Checks that messages are grouped by template, hostile texts fast, and that shapes show nothing private. */
export const causes: Row = {
  name: 'causes',
  bug: [
    {
      what: 'words with digits stay',
      file: 'domain/causes/words.ts',
      replace: [['return NUMBER.test(word);', 'return false;']],
      notice: /an address in/,
    },
    {
      what: 'quoted text stays',
      file: 'domain/causes/masking.ts',
      replace: [['isTold || isArgument || isPanic', 'content.length > 0']],
      notice: /user text/,
    },
    {
      what: 'the message is cut before it is masked',
      file: 'domain/causes/shape.ts',
      replace: [['maskText(tellingPart(text))', 'maskText(tellingPart(cut(text)))']],
      notice: /own messages: accuracy/,
    },
    {
      what: 'control characters stay',
      file: 'domain/causes/shape.ts',
      replace: [
        ['unquote(clean(readable(message)))', 'unquote(readable(message))'],
        ["cut(shape.replaceAll(UNSAFE, ''))", 'cut(shape)'],
      ],
      notice: /control, bidi/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE }) => {
    const module = new URL('domain/cause.ts', pathToFileURL(source));
    const { causeOf } = (await import(module.href)) as { causeOf: CauseOf };
    const figures: (readonly [string, string])[] = [];
    const faults: string[] = [];
    let withUserText = 0;
    let showing = 0;
    let micros = 0;
    let count = 0;
    for (const { name, templates, minAccuracy } of MESSAGE_SETS) {
      print(name);
      const messages = messagesOf(templates, short ? 10 : 50, seed);
      const grouping = new Grouping();
      // The first rounds are slowed by compilation. A short run checks no times.
      const length = short ? 1 : ROUNDS;
      const rounds = Array.from({ length }, () => timedCauses(messages, causeOf));
      const found = rounds[0]?.found ?? [];
      micros += Math.min(...rounds.map((round) => round.micros));
      count += messages.length;
      for (const [index, message] of messages.entries()) {
        const { id, shape } = found[index] ?? { id: '', shape: '' };
        grouping.add(message.template, id);
        faults.push(...faultsOf(shape, message.error_msg));
        if (message.userTexts.length === 0) continue;
        withUserText += 1;
        if (showsUserText(shape, message)) showing += 1;
      }
      const { accuracy, f1, groups } = grouping.score;
      const perTemplate = groups / templates.length;
      figures.push([
        `${name}: accuracy, F1, groups a template`,
        `${accuracy.toFixed(4)}, ${f1.toFixed(3)}, ${perTemplate.toFixed(2)} (${messages.length} messages of ${templates.length} templates)`,
      ]);
      if (accuracy < minAccuracy) faults.push(`${name}: accuracy ${accuracy.toFixed(4)}`);
      if (f1 < MIN_F1) faults.push(`${name}: F1 ${f1.toFixed(3)}`);
      if (perTemplate > MAX_GROUPS_A_TEMPLATE) faults.push(`${name}: ${groups} groups`);
    }
    if (showing > MAX_USER_TEXT * withUserText) {
      faults.push(`user text in ${showing} of ${withUserText} shapes`);
    }
    figures.push(['shapes that show user text', `${showing} of ${withUserText}`]);
    figures.push(['µs a message', (micros / count).toFixed(1)]);
    print('hostile texts');
    const slowest = slowestHostile(causeOf, faults);
    figures.push(['hostile texts of 64 KiB', String(HOSTILE_TEXTS.length)]);
    figures.push(['the slowest, ms', `${slowest.ms.toFixed(2)}: ${slowest.name}`]);
    // A short run is too brief, and the machine too busy, to check times.
    if (!short && micros / count > MAX_MICROS) faults.push(`${micros / count} µs a message`);
    if (!short && slowest.ms > MAX_HOSTILE_MS) faults.push(`${slowest.ms} ms: ${slowest.name}`);
    if (faults.length > 0) throw new Error([...new Set(faults)].slice(0, 20).join('\n'));
    return figures;
  },
};

function slowestHostile(
  causeOf: CauseOf,
  faults: string[],
): { readonly name: string; readonly ms: number } {
  let slowest = { name: '', ms: 0 };
  for (const [name, text] of HOSTILE_TEXTS) {
    let ms = Infinity;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const begin = process.threadCpuUsage();
      const { shape } = causeOf({ error_id: null, error_msg: text });
      const { user, system } = process.threadCpuUsage(begin);
      ms = Math.min(ms, (user + system) / 1000);
      if (tries === 0) faults.push(...faultsOf(shape, name));
    }
    if (ms > slowest.ms) slowest = { name, ms };
  }
  return slowest;
}

function faultsOf(shape: string, message: string): readonly string[] {
  const faults = FORBIDDEN.filter(([, pattern]) => pattern.test(shape)).map(
    ([what]) => `${what} in ${JSON.stringify(shape)}, of ${JSON.stringify(message.slice(0, 80))}`,
  );
  if (shape.length > MAX_SHAPE) faults.push(`a shape of ${shape.length} characters`);
  return faults;
}
