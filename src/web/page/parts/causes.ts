import { html } from 'hono/html';
import { causeOf } from '../../../domain/cause.ts';
import {
  type CauseList,
  type CauseRow,
  MAX_GROUPED_FAILURES,
} from '../../../monitor/ports/store.ts';
import type { Html } from '../html.ts';
import { dayText } from '../text/failure-words.ts';
import { shareText } from '../text/share.ts';
import { timeWithAge, utcTime } from '../text/time.ts';
import { untrustedName } from '../text/untrusted-text.ts';
import { counted, grouped } from '../text/words.ts';
import type { ListContext } from './lists.ts';
import { table } from './table.ts';

/** Causes of the settled failures of the last day, each with its share of them; most frequent first. */
export function causeList(
  { causes, others }: CauseList,
  retentionMs: number,
  context: ListContext,
): Html {
  const period = dayText(retentionMs);
  if (causes.length === 0) {
    return html`<p class="quiet">No failure of the last ${period} has a known cause.</p>`;
  }
  const total = causes.reduce((sum, { count }) => sum + count, others.count);
  const rows = causes.map(
    (row) =>
      [
        nameOf(row),
        html`${shareOf(row.count, total, failuresPath(row.cause, context))}
        ${
          context.project === undefined
            ? html`<div class="quiet">in ${counted(row.projects, 'project')}</div>`
            : ''
        }`,
        html`${timeWithAge(row.lastAt, context.now)}
        ${row.isNew ? html`<div class="quiet">first ${utcTime(row.firstAt)}</div>` : ''}`,
      ] as const,
  );
  const rest = [
    html`${counted(others.causes, 'other cause')}`,
    shareOf(others.count, total),
    html``,
  ] as const;
  return html`${table({
      caption: `Causes of the ${total < MAX_GROUPED_FAILURES ? '' : `newest ${grouped(total)} `}failures of the last ${period}, most frequent first`,
      headings: ['Cause', 'Failures', 'Last seen'],
      rows: others.count === 0 ? rows : [...rows, rest],
    })}
    <p class="quiet">
      Failures have the same cause if their messages differ only in what varies, shown as
      <code>&lt;*&gt;</code>. A cause is new if the store has no earlier failure with it. A failure
      counts as soon as its error_info is known.
    </p>`;
}

function nameOf({ cause, errorInfo, isNew }: CauseRow): Html {
  const { shape } = causeOf(errorInfo);
  return html`<div class="head">
      ${isNew ? html`<strong class="is-new">new</strong>` : ''}
      <span class="error-id"
        >${errorInfo?.error_id ? untrustedName(errorInfo.error_id) : 'no error_id'}</span
      >
      <code class="quiet">${cause}</code>
    </div>
    <div>
      ${shape === '' ? html`<span class="quiet">no error_msg</span>` : untrustedName(shape)}
    </div>`;
}

function shareOf(count: number, total: number, path?: string): Html {
  const text = counted(count, 'failure');
  return html`${path === undefined ? text : html`<a href="${path}">${text}</a>`},
    ${shareText(count, total)}
    <svg class="bar share" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
      <rect class="none" width="100" height="20" />
      <rect class="FAILED" width="${((count / total) * 100).toFixed(2)}" height="20" />
    </svg>`;
}

function failuresPath(cause: string, { root, project }: ListContext): string {
  const query = new URLSearchParams({ ...(project === undefined ? {} : { project }), cause });
  return `${root}api/v1/failures?${query.toString()}`;
}
