import type { Steps } from '../../domain/steps.ts';
import { visibleJson } from '../../domain/visible.ts';
import type { CauseList } from '../../monitor/ports/store.ts';
import { takeSteps } from '../../monitor/steps.ts';
import { causeFields, otherCausesFields } from '../../rows/fields.ts';
import { answer, MAX_PAGE_BYTES } from './page-of-rows.ts';

/**
 * Returns the text of the answer, `{"data": [rows], "next_cursor": null}`. Causes that would exceed the maximum size are
 * counted with those that the limit has left out.
 */
export async function causesAnswer(list: CauseList): Promise<string> {
  return answer(await takeSteps(causeTexts(list)), null);
}

function* causeTexts({ causes, others }: CauseList): Steps<readonly string[]> {
  const texts: string[] = [];
  let bytes = 0;
  for (const cause of causes) {
    const text = toText(causeFields(cause));
    bytes += Buffer.byteLength(text);
    if (texts.length > 0 && bytes > MAX_PAGE_BYTES) break;
    texts.push(text);
    yield;
  }
  const cut = causes.slice(texts.length);
  const count = cut.reduce((sum, cause) => sum + cause.count, others.count);
  if (count > 0) texts.push(toText(otherCausesFields(count)));
  return texts;
}

function toText(fields: object): string {
  return visibleJson(JSON.stringify(fields));
}
