import { randomNumbers } from '../random.ts';
import { FIFTH_TEMPLATES } from './fifth-templates.ts';
import { FOURTH_TEMPLATES } from './fourth-templates.ts';
import { SECOND_TEMPLATES } from './second-templates.ts';
import { SIXTH_TEMPLATES } from './sixth-templates.ts';
import { TEMPLATES } from './templates.ts';
import { THIRD_TEMPLATES } from './third-templates.ts';
import { fill, withoutSlots } from './values.ts';

/** Templates, and the accuracy that their messages must reach. */
export interface MessageSet {
  readonly name: string;
  readonly templates: readonly string[];
  readonly minAccuracy: number;
}

/** The rules were developed with the first set. Each further set was written after they were finished with those before. */
export const MESSAGE_SETS: readonly MessageSet[] = [
  { name: 'own messages', templates: TEMPLATES, minAccuracy: 0.95 },
  { name: 'second set', templates: SECOND_TEMPLATES, minAccuracy: 0.85 },
  { name: 'third set', templates: THIRD_TEMPLATES, minAccuracy: 0.85 },
  { name: 'fourth set', templates: FOURTH_TEMPLATES, minAccuracy: 0.85 },
  { name: 'fifth set', templates: FIFTH_TEMPLATES, minAccuracy: 0.85 },
  { name: 'sixth set', templates: SIXTH_TEMPLATES, minAccuracy: 0.85 },
];

export interface TemplateMessage {
  readonly template: string;
  readonly error_id: null;
  readonly error_msg: string;
  /** Parts that a user or a model wrote. */
  readonly userTexts: readonly string[];
}

/** Returns messages of every template, in turns. The same seed makes the same messages. */
export function messagesOf(
  templates: readonly string[],
  perTemplate: number,
  seed: number,
): readonly TemplateMessage[] {
  const random = randomNumbers(seed);
  return Array.from({ length: perTemplate }, () =>
    templates.map((template) => {
      const { message, userTexts } = fill(template, random);
      return { template, error_id: null, error_msg: message, userTexts };
    }),
  ).flat();
}

/** Number of consecutive words that identify a text. */
const IDENTIFYING_WORDS = 3;

/** Whether a shape has consecutive words of a user text that its template does not have. */
export function showsUserText(shape: string, { template, userTexts }: TemplateMessage): boolean {
  const shown = spaced(shape);
  const own = spaced(withoutSlots(template));
  return userTexts.some((text) => {
    const words = wordsOf(text);
    const length = Math.min(IDENTIFYING_WORDS, words.length);
    return words.some((_, at) => {
      const run = words.slice(at, at + length);
      const part = ` ${run.join(' ')} `;
      return run.length === length && shown.includes(part) && !own.includes(part);
    });
  });
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_.@']+/gu) ?? [];
}

function spaced(text: string): string {
  return ` ${wordsOf(text).join(' ')} `;
}
