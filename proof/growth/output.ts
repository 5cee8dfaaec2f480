import { DatabaseError } from 'pg';
import { csvLine } from '../../src/cli/output/csv.ts';
import { toJsonLine } from '../../src/cli/output/json.ts';
import { jsonLines, tableLines } from '../../src/cli/output/table.ts';
import { quoteWord, truncate, widthOf } from '../../src/cli/output/text.ts';
import { errorLabel, isErrorId } from '../../src/domain/error-label.ts';
import { visible, visibleJson } from '../../src/domain/visible.ts';
import { createLogger } from '../../src/log/logger.ts';
import { printableFields } from '../../src/log/printable.ts';
import { renderLabels } from '../../src/metrics/exposition.ts';
import { failureFields } from '../../src/rows/fields.ts';
import { toStoreError } from '../../src/store/postgres/errors.ts';
import { fromStored, parseStored, toStored } from '../../src/store/postgres/sql/text.ts';
import { answer } from '../../src/web/api/page-of-rows.ts';
import { readCursor, writeCursor } from '../../src/web/api/cursor.ts';
import { eventText, readId } from '../../src/web/events/event.ts';
import { chooseEncoding } from '../../src/web/request/encoding.ts';
import { parseHost } from '../../src/web/request/host.ts';
import { createLogins } from '../../src/web/protection/logins.ts';
import {
  untrustedText,
  untrustedMessage,
  untrustedName,
  shortUntrusted,
} from '../../src/web/page/text/untrusted-text.ts';
import { readParameters } from '../../src/web/api/parameters.ts';
import { z } from 'zod';
import * as parameters from '../../src/web/api/parameters.ts';
import { readTarget } from '../../src/web/request/target.ts';
import { isCrossSite, isForThisServer } from '../../src/web/protection/server-names.ts';
import type { TextFunction } from './text-function.ts';

/** Maximum head of a request that Node reads, bytes. */
const MAX_HEAD = 16 * 1024;
const logger = createLogger({
  level: 'debug',
  destination: { write: () => {} },
  onFatalError: (error) => {
    throw error;
  },
});
const logins = createLogins();
const users = new Map([['user', `$2b$04$${'a'.repeat(53)}`]]);
const columns = [{ name: 'text', cell: (row: string) => row, isTruncatable: true } as const];

function target(url: string, host: string): void {
  readTarget({ url, httpVersion: '1.1', rawHeaders: ['host', host] });
}

/** Functions that read requests or print untrusted text. */
export const output: readonly TextFunction[] = [
  { name: 'web/request/encoding.ts chooseEncoding', call: chooseEncoding },
  { name: 'web/request/host.ts parseHost', call: parseHost },
  { name: 'web/request/target.ts readTarget', call: (text) => target(text, 'a') },
  { name: 'web/request/target.ts readTarget, of a path', call: (text) => target(`/${text}`, 'a') },
  {
    name: 'web/request/target.ts readTarget, in absolute form',
    call: (text) => target(`http://${text}`, 'a'),
  },
  { name: 'web/request/target.ts readTarget, of a host', call: (text) => target('/', text) },
  {
    name: 'web/protection/server-names.ts isCrossSite',
    call: (text) => isCrossSite({ origin: `http://${text}` }, undefined, ['a']),
  },
  {
    name: 'web/protection/server-names.ts isForThisServer',
    call: (text) => {
      const host = { name: text, port: undefined, isAddress: false };
      const headers = { 'accept-encoding': text };
      const names = { listen: '0.0.0.0', allowed: ['a'] };
      return isForThisServer({ host, route: 'metrics' }, headers, names);
    },
  },
  { name: 'web/api/cursor.ts readCursor', maxLength: MAX_HEAD, call: readCursor },
  { name: 'web/api/cursor.ts writeCursor', call: (text) => writeCursor([text]) },
  { name: 'web/events/event.ts readId', call: readId },
  {
    name: 'web/events/event.ts eventText',
    call: (text) => {
      const row = {
        transitionId: 1,
        at: 0,
        project: text,
        promptId: text,
        promptName: text,
        settlement: undefined,
        cause: undefined,
      };
      return eventText('failure', failureFields(row));
    },
  },
  {
    name: 'web/protection/logins.ts createLogins',
    maxLength: MAX_HEAD,
    call: (text) => logins.check(text, users, 'client'),
  },
  {
    name: 'web/protection/logins.ts createLogins, of a login',
    maxLength: MAX_HEAD,
    call: (text) => logins.check(`Basic ${text}`, users, 'client'),
  },
  {
    // Node's URLSearchParams takes quadratic time for names without values.
    name: 'web/api/parameters.ts readParameters',
    maxLength: MAX_HEAD,
    call: (text) => readParameters(`http://a/?${text}`, z.object({ limit: parameters.limit })),
  },
  {
    name: 'web/api/parameters.ts readParameters, of a value',
    maxLength: MAX_HEAD,
    call: (text) => {
      const { after, cursor, limit, project, status, type } = parameters;
      const value = encodeURIComponent(text.toWellFormed());
      const query = ['after', 'cursor', 'limit', 'project', 'status', 'type'].map(
        (each) => `${each}=${value}`,
      );
      const known = z.object({ after, cursor, limit, project, status, type });
      return readParameters(`http://a/?${query.join('&')}`, known);
    },
  },
  { name: 'web/api/page-of-rows.ts answer', call: (text) => answer([text], null) },
  {
    name: 'web/page/text/untrusted-text.ts untrustedText',
    call: (text) => untrustedText(text, text.length, 'lines'),
  },
  { name: 'web/page/text/untrusted-text.ts untrustedName', call: untrustedName },
  { name: 'web/page/text/untrusted-text.ts shortUntrusted', call: shortUntrusted },
  {
    name: 'web/page/text/untrusted-text.ts untrustedMessage',
    call: (text) => untrustedMessage(text, 8192),
  },
  {
    name: 'domain/error-label.ts errorLabel',
    call: (text) => errorLabel({ error_id: text, error_msg: null }),
  },
  { name: 'domain/error-label.ts isErrorId', call: isErrorId },
  { name: 'domain/visible.ts visible', call: visible },
  { name: 'domain/visible.ts visibleJson', call: visibleJson },
  { name: 'cli/output/json.ts toJsonLine', call: (text) => toJsonLine({ text }) },
  { name: 'cli/output/text.ts quoteWord', call: quoteWord },
  { name: 'cli/output/text.ts widthOf', call: widthOf },
  { name: 'cli/output/text.ts truncate', call: (text) => truncate(text, text.length / 2) },
  { name: 'cli/output/csv.ts csvLine', call: (text) => csvLine([text]) },
  {
    name: 'cli/output/table.ts tableLines',
    call: (text) => [...tableLines([text], columns, { width: 80, color: false })],
  },
  {
    name: 'cli/output/table.ts jsonLines',
    call: (text) => [...jsonLines([text], (row) => ({ row }))],
  },
  {
    name: 'log/printable.ts printableFields',
    call: (text) => printableFields({ text, err: new Error(text) }),
  },
  {
    name: 'log/logger.ts createLogger',
    call: (text) => logger.error({ event: 'e', text, err: new Error(text) }, 'Text'),
  },
  { name: 'metrics/exposition.ts renderLabels', call: (text) => renderLabels({ project: text }) },
  { name: 'store/postgres/sql/text.ts toStored', call: (text) => toStored(text) },
  { name: 'store/postgres/sql/text.ts fromStored', call: (text) => fromStored(text) },
  {
    name: 'store/postgres/sql/text.ts parseStored',
    call: (text) => parseStored(JSON.stringify([toStored(text)])),
  },
  {
    name: 'store/postgres/errors.ts toStoreError',
    call: (text) =>
      toStoreError(new DatabaseError(text, text.length, 'error'), ['e', 'd', 'r', 'password']),
  },
];
