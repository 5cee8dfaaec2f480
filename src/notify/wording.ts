import { NO_ERROR_INFO_WORDS } from '../domain/failure.ts';
import { beginningOf, onOneLine } from '../domain/visible.ts';
import { counted, duration, grouped } from '../domain/words.ts';
import { NO_KEY_WORDS, POLL_FAILURE_WORDS, REFUSED_KEY_WORDS } from '../monitor/errors.ts';
import {
  type DownProject,
  type FailedPrompt,
  type FinishedExperiment,
  type Message,
  type MessageOf,
  type PromptRef,
  type StuckPrompt,
} from './message.ts';

// Words messages for people, once for all formats: they only lay this out.

/** Words of evalwatch, or a text from outside: on one line, without hidden characters, not empty. */
type Part = string | Outside;
interface Outside {
  readonly text: string;
  readonly style: 'plain' | 'strong' | 'code';
  readonly url?: string | undefined;
}
export type Line = readonly Part[];

/** Which prompt, experiment or project it is, and what happened to it. */
export interface Item {
  readonly head: Line;
  readonly body: Line;
}

export interface Wording {
  readonly mood: 'bad' | 'good' | 'neutral';
  readonly title: Line;
  /** Belongs to the title: `title: why`. */
  readonly why: Line;
  /** One for each prompt, experiment or project; of a single experiment one for each cause. */
  readonly items: readonly Item[];
  /** Returns what the first so many items leave out. */
  readonly more: (shown: number) => readonly Line[];
  readonly link?: { readonly words: string; readonly url: string } | undefined;
  readonly footer: Line;
}

const MOODS: Readonly<Record<Message['type'], Wording['mood']>> = {
  'prompts.failed': 'bad',
  'prompts.completed': 'good',
  'prompts.stuck': 'bad',
  'prompts.recovered': 'good',
  'experiments.finished': 'good',
  'projects.down': 'bad',
  'projects.up': 'good',
  test: 'neutral',
};
export const MARKS: Readonly<Record<Wording['mood'], string>> = {
  bad: '🔴',
  good: '🟢',
  neutral: '🔵',
};

export function plain(line: Line): string {
  return line.map((part) => (typeof part === 'string' ? part : part.text)).join('');
}

/** `3 prompts of checkout-bot failed: TIMEOUT`. */
export function headline({ title, why }: Wording): Line {
  return why.length === 0 ? title : [...title, ': ', ...why];
}

/** Returns the line with a capital first letter, unless it begins with a text from outside. */
export function sentence([first, ...rest]: Line): Line {
  if (typeof first !== 'string') return first === undefined ? [] : [first, ...rest];
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest];
}

/** Cuts a text to `max` UTF-16 code units. */
export function cutTo(text: string, max: number): string {
  if (text.length <= max) return text;
  // Half of a character is left out.
  const start = text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '');
  return `${start.toWellFormed()}…`;
}

/** Longer addresses are left out: some receivers refuse the whole message. */
const MAX_URL = 1000;

/** Words a message. */
export function wordingOf(message: Message): Wording {
  const wording = wordsOf(message);
  const { data } = message;
  if (!('after_pause' in data && data.after_pause)) return wording;
  const { why } = wording;
  const pause = `${why.length === 0 ? '' : '; '}seen by the first poll after a pause`;
  return { ...wording, why: [...why, pause] };
}

function wordsOf(message: Message): Wording {
  const { type } = message;
  if (type === 'prompts.failed') return aboutFailures(message);
  if (type === 'prompts.completed') {
    const item = (prompt: PromptRef) => ({ head: promptParts(prompt), body: [] });
    return aboutPrompts(message, 'completed', item);
  }
  if (type === 'prompts.stuck' || type === 'prompts.recovered') return aboutStuck(message);
  if (type === 'experiments.finished') return aboutExperiments(message);
  if (type === 'projects.down' || type === 'projects.up') return aboutProjects(message);
  return {
    ...common(message),
    title: ['Test message to ', outside(message.data.receiver, 64, 'strong')],
    why: ['messages of evalwatch arrive here'],
  };
}

/** What all messages have. */
function common({ type, timestamp }: Message, team: string | null = null) {
  return {
    mood: MOODS[type],
    why: [],
    items: [],
    more: () => [],
    footer: [
      'evalwatch · ',
      ...(team ? ['team ', outside(team, 60), ' · '] : []),
      `${timestamp.slice(0, 10)} ${timestamp.slice(11, 19)} UTC`,
    ],
  };
}

type AboutPrompts = Extract<Message, { readonly type: `prompts.${string}` }>;

function aboutPrompts<Each extends AboutPrompts>(
  message: Each,
  verb: string,
  item: (prompt: Each['data']['prompts'][number]) => Item,
): Wording {
  const { project, team, url, count, prompts } = message.data;
  return {
    ...common(message, team),
    title: [`${counted(count, 'prompt')} of `, outside(project, 60, 'strong'), ` ${verb}`],
    items: prompts.map(item),
    more: (shown) => andMore(count - shown),
    link: linkTo(url),
  };
}

function promptParts({ prompt_id: id, prompt_name: name, url }: PromptRef): Line {
  if (!name || name === id) return [outside(id, 100, 'code', url)];
  return [outside(name, 100, 'strong', url), ' (', outside(id, 100, 'code'), ')'];
}

function aboutFailures(message: MessageOf<'prompts.failed'>): Wording {
  const { timestamp: now, data } = message;
  const item = (prompt: FailedPrompt) => ({
    head: [...promptParts(prompt), ` at ${clock(prompt.time, now)}`],
    body: failureText(prompt),
  });
  const counts = [...data.causes.map(causeLine), ...otherCauses(data.causes, data.count)];
  const all = data.causes.length === 0 ? [] : [['All by cause:'], ...counts];
  return {
    ...aboutPrompts(message, 'failed', item),
    why: errorCounts(data.causes, data.count, false),
    more: (shown) => (shown < data.count ? [...andMore(data.count - shown), ...all] : []),
  };
}

function aboutStuck(message: MessageOf<'prompts.stuck' | 'prompts.recovered'>): Wording {
  const { type, timestamp: now, data } = message;
  const isOver = type === 'prompts.recovered';
  const limit = ({ limit_seconds }: StuckPrompt) => duration(limit_seconds * 1000);
  const item = (prompt: StuckPrompt) => ({
    head: promptParts(prompt),
    body: [
      isOver
        ? `${prompt.status} from ${period(prompt, now)}, then ${prompt.to ?? 'gone'}`
        : `${prompt.status} since ${period(prompt, now)}, limit ${limit(prompt)}`,
    ],
  });
  const verb = `${data.count === 1 ? 'is' : 'are'} ${isOver ? 'no longer stuck' : 'stuck'}`;
  const why = new Set(data.prompts.map((each) => `${each.status} longer than ${limit(each)}`));
  return {
    ...aboutPrompts(message, verb, item),
    why: isOver ? [] : [Array.from(why).slice(0, 3).join(', ')],
  };
}

function aboutExperiments(message: MessageOf<'experiments.finished'>): Wording {
  const { project, team, url, count, experiments } = message.data;
  const mood = experiments.some(({ prompts }) => prompts.FAILED > 0) ? 'bad' : 'good';
  const about = { ...common(message, team), mood } as const;
  const of = [' of ', outside(project, 60, 'strong')];
  const [first] = experiments;
  if (count === 1 && first !== undefined) {
    const { causes, prompts } = first;
    return {
      ...about,
      title: [outside(first.experiment, 100, 'strong'), ...of, ' finished', ...tookParts(first)],
      why: outcomeCounts(first),
      items: causes.map((each) => ({ head: causeLine(each), body: [] })),
      more: (shown) =>
        causes.length === 0 ? [] : otherCauses(causes.slice(0, shown), prompts.FAILED),
      link: linkTo(first.url) ?? linkTo(url),
    };
  }
  return {
    ...about,
    title: [counted(count, 'experiment'), ...of, ' finished'],
    items: experiments.map((each) => ({
      head: [outside(each.experiment, 100, 'strong', each.url), ...tookParts(each)],
      body: outcomeCounts(each),
    })),
    more: (shown) => andMore(count - shown),
    link: linkTo(url),
  };
}

/** ` after 41 min`; nothing if one poll saw all of it. */
function tookParts({ duration_seconds: seconds }: FinishedExperiment): Line {
  return seconds > 0 ? [` after ${duration(seconds * 1000)}`] : [];
}

/** `38 completed, 2 failed (OUTPUT_PARSE_ERROR 2)`. */
function outcomeCounts({ prompts, causes }: FinishedExperiment): Line {
  const { COMPLETED: completed, FAILED: failed, UNKNOWN: unknown } = prompts;
  const errors = errorCounts(causes, failed, true);
  const parts: Line = [
    ...(completed > 0 ? [', ', `${grouped(completed)} completed`] : []),
    ...(failed > 0 ? [', ', `${grouped(failed)} failed`] : []),
    ...(failed > 0 && errors.length > 0 ? [' (', ...errors, ')'] : []),
    ...(unknown > 0 ? [', ', `${grouped(unknown)} unknown`] : []),
  ];
  return parts.slice(1);
}

type Causes = FinishedExperiment['causes'];

/** `2 × TIMEOUT: No answer within <*>`. */
function causeLine({ count, error_id, shape }: Causes[number]): Line {
  return [`${grouped(count)} × `, ...explanation(error_id, shape)];
}

/** How many of so many failures have none of these causes. */
function otherCauses(causes: Causes, total: number): readonly Line[] {
  const left = causes.reduce((rest, { count }) => rest - count, total);
  return left > 0 ? [[`${grouped(left)} × another cause, or not known yet`]] : [];
}

/** `OUTPUT_PARSE_ERROR 60, TIMEOUT 30, other 10`; without the count if there is only one, unless `isCounted`. */
function errorCounts(causes: Causes, total: number, isCounted: boolean): Line {
  const counts = new Map<string, number>();
  for (const { error_id, count } of causes) {
    counts.set(error_id ?? '', (counts.get(error_id ?? '') ?? 0) + count);
  }
  const frequent = Array.from(counts)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, 3);
  const others = frequent.reduce((left, [, count]) => left - count, total);
  const parts = frequent.flatMap(([id, count]): Line => [
    ', ',
    id === '' ? 'no error_id' : outside(id, 60, 'code'),
    ...(count === total && !isCounted ? [] : [` ${grouped(count)}`]),
  ]);
  if (others > 0 && parts.length > 0) parts.push(`, other ${grouped(others)}`);
  return parts.slice(1);
}

function failureText({ error_info, reason }: FailedPrompt): Line {
  if (error_info !== null) return explanation(error_info.error_id, error_info.error_msg);
  return [
    reason === null
      ? 'Its error_info is not known yet'
      : `No error_info: ${NO_ERROR_INFO_WORDS[reason]}`,
  ];
}

function explanation(errorId: string | null, words: string | null): Line {
  if (!errorId && !words) return ['no error_id, no message'];
  return [
    ...(errorId ? [outside(errorId, 100, 'code')] : []),
    ...(errorId && words ? [': '] : []),
    ...(words ? [outside(words, 300)] : []),
  ];
}

function aboutProjects(message: MessageOf<'projects.down' | 'projects.up'>): Wording {
  const { type, timestamp: now, data } = message;
  const isUp = type === 'projects.up';
  const reasons = new Set(isUp ? [] : data.projects.map(pollFailureText));
  const why = reasons.size === 1 ? Array.from(reasons).filter(Boolean) : [];
  const [first] = data.projects;
  if (data.count === 1 && first !== undefined) {
    const name = outside(first.project, 60, 'strong');
    const answer = { head: ['The service answered'], body: [outside(first.detail ?? '', 300)] };
    return {
      ...common(message, first.team),
      title: [
        name,
        isUp ? ' is polled again' : ` has had no successful poll since ${period(first, now)}`,
      ],
      why: isUp ? [`no successful poll from ${period(first, now)}`] : why,
      items: isUp || !first.detail ? [] : [answer],
      link: linkTo(first.url),
    };
  }
  const longest = Math.max(
    ...data.projects.map(({ since }) => Date.parse(now) - Date.parse(since)),
  );
  const verb = isUp
    ? 'are polled again'
    : `have had no successful poll for up to ${duration(longest)}`;
  return {
    ...common(message),
    title: [`${counted(data.count, 'project')} ${verb}`],
    why,
    items: data.projects.map((each) => ({
      head: [
        outside(each.project, 60, 'strong', each.url),
        ...(each.team ? [' (', outside(each.team, 60), ')'] : []),
        ` ${isUp ? 'from' : 'since'} ${period(each, now)}`,
      ],
      body: reasons.size > 1 ? sentence([pollFailureText(each)].filter(Boolean)) : [],
    })),
    more: (shown) => andMore(data.count - shown),
    link: linkTo(data.url),
  };
}

/** `the service refuses the API key (401)`; empty without a reason. */
function pollFailureText({ reason, status_code: code }: DownProject): string {
  if (reason === null) return '';
  if (reason === 'auth') return code === null ? NO_KEY_WORDS : withCode(REFUSED_KEY_WORDS, code);
  return withCode(POLL_FAILURE_WORDS[reason], code);
}

/** Replaces `(5xx)` by the code. */
function withCode(words: string, code: number | null): string {
  return code === null ? words : words.replace(/\([^()]*\)$/, `(${code})`);
}

/** `14:02 UTC (5 min)`; `14:02 UTC to 14:20 UTC (18 min)` if it is over. */
function period(
  { since, until }: { readonly since: string; readonly until: string | null },
  now: string,
): string {
  const end = until === null ? '' : ` to ${clock(until, now)}`;
  const length = duration(Date.parse(until ?? now) - Date.parse(since));
  return `${clock(since, now)}${end} (${length})`;
}

/** `14:02 UTC`, with the date if it is another day than `now`. */
function clock(time: string, now: string): string {
  const day = time.slice(0, 10) === now.slice(0, 10) ? '' : `${time.slice(0, 10)} `;
  return `${day}${time.slice(11, 16)} UTC`;
}

function andMore(count: number): readonly Line[] {
  return count > 0 ? [[`and ${grouped(count)} more`]] : [];
}

function linkTo(url: string | null): Wording['link'] {
  return url === null || url.length > MAX_URL ? undefined : { words: 'Open in evalwatch', url };
}

/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}]/u;

/** The beginning of a text from outside, isolated from the writing direction around it. */
function outside(
  raw: string,
  length: number,
  style: Outside['style'] = 'plain',
  url: string | null = null,
): Outside {
  // No more is read: the text may be long, and its length characters take at most twice as many code units.
  const start = raw.slice(0, 2 * length);
  const { text, isWhole } = beginningOf(onOneLine(start), length);
  const cut = `${text || '""'}${isWhole && start === raw ? '' : '…'}`;
  return {
    text: RIGHT_TO_LEFT.test(cut) ? `\u2068${cut}\u2069` : cut,
    style,
    ...(url !== null && url.length <= MAX_URL && { url }),
  };
}
