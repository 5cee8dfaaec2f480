import { visible } from '../domain/visible.ts';
import type { PromptResult, Result } from './waiting.ts';

/** GitLab reads up to 30 MB and 250,000 values of a report. */
const MAX_CASES = 20_000;
const MAX_LENGTH = 20_000_000;
/** Maximum length of a text, before it is escaped. */
const MAX_TEXT = 1000;

/** Undefined if a prompt has passed. */
type Fault =
  { readonly kind: 'failure' | 'error'; readonly type: string; readonly text: string } | undefined;
type Case = readonly [name: string, fault: Fault];

/** Returns JUnit XML with a test case for each prompt, and one for the fault of the wait. One that is too long ends early. */
export function junitXml(results: readonly Result[], fault: string | undefined): string {
  const all = results.map(({ row, prompts }): readonly [string, number, readonly Case[]] => {
    const cases = prompts.map(caseOf).toSorted(([, one], [, other]) => rank(one) - rank(other));
    return [`${row.project}/${row.experiment}`, row.duration_seconds ?? 0, cases];
  });
  const why: Fault = fault === undefined ? fault : { kind: 'error', type: 'wait', text: fault };
  if (why !== undefined) all.unshift(['evalwatch', 0, [['evalwatch wait', why]]]);
  let [count, length] = [0, 0];
  const suites = all.map(([name, seconds, cases]) => {
    const numbers = { failure: 0, error: 0, passed: 0 };
    let lines = '';
    for (const each of cases) {
      const line = xmlOf(name, each);
      [count, length] = [count + 1, length + line.length];
      if (count > MAX_CASES || length > MAX_LENGTH) break;
      numbers[each[1]?.kind ?? 'passed'] += 1;
      lines += line;
    }
    const { failure, error, passed } = numbers;
    const counts = `tests="${failure + error + passed}" failures="${failure}" errors="${error}" skipped="0"`;
    return `<testsuite name="${escape(name)}" ${counts} time="${seconds}">\n${lines}</testsuite>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`;
}

function rank(fault: Fault): number {
  return fault === undefined ? 1 : 0;
}

/** Programs that read reports keep one case of a name, so it has the id. */
function caseOf({ fields, failure }: PromptResult): Case {
  const { prompt_id, prompt_name, status, status_raw } = fields;
  const name = prompt_name === null ? prompt_id : `${prompt_name.slice(0, 200)} (${prompt_id})`;
  if (status === 'COMPLETED') return [name, undefined];
  if (status !== 'FAILED') {
    const text = status === 'UNKNOWN' ? `unknown status ${status_raw}` : `not finished: ${status}`;
    return [name, { kind: 'error', type: status, text }];
  }
  const { error_id = null, error_msg = null } = failure?.error_info ?? {};
  const text = [error_id, error_msg].filter(Boolean).join(': ');
  const type = error_id ?? status;
  return [name, { kind: 'failure', type, text: text || 'evalwatch has no error_info of it' }];
}

function xmlOf(suite: string, [name, fault]: Case): string {
  const start = `<testcase classname="${escape(suite)}" name="${escape(name)}" time="0"`;
  if (fault === undefined) return `${start}/>\n`;
  const { kind, type } = fault;
  const text = escape(fault.text);
  // GitLab shows the content, other programs the message.
  return `${start}><${kind} type="${escape(type)}" message="${text}">${text}</${kind}></testcase>\n`;
}

/** Returns untrusted text for XML 1.0, which has neither control characters nor U+FFFE and U+FFFF. */
function escape(text: string): string {
  return visible(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text)
    .replaceAll(/[\ufffe\uffff]/g, '\ufffd')
    .replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
